package view_test

import (
	"bytes"
	"compress/zlib"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"codeberg.org/go-pdf/fpdf"

	"holdfast.dev/libs/money"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/view"
)

// shown is a text on a page, with the ends of its line in millimeters from the left and from the bottom.
type shown struct {
	text           string
	left, right, y float64
}

var (
	streams   = regexp.MustCompile(`(?s)stream\n(.*?)\nendstream`)
	operators = regexp.MustCompile(`(?s)/F(\w+) ([\d.]+) Tf|BT ([\d.-]+) ([\d.-]+) Td \(((?:\\.|[^\\)])*)\)Tj`)
	escaped   = regexp.MustCompile(`(?s)\\(.)`)
)

// pagesOfTexts returns the texts of each page of a document.
func pagesOfTexts(t testing.TB, pdf []byte) (pages [][]shown) {
	t.Helper()
	measure := fpdf.New("P", "mm", "A4", "")
	measure.AddUTF8FontFromBytes("NotoSans", "", view.Regular)
	for _, stream := range streams.FindAllSubmatch(pdf, -1) {
		r, err := zlib.NewReader(bytes.NewReader(stream[1]))
		if err != nil {
			continue
		}
		content, err := io.ReadAll(r)
		if err != nil || !bytes.Contains(content, []byte(" Tf ET")) {
			continue
		}
		var page []shown
		for _, m := range operators.FindAllSubmatch(content, -1) {
			if len(m[1]) > 0 {
				measure.SetFont("NotoSans", "", number(t, m[2]))
				continue
			}
			text := decode(m[5])
			left := number(t, m[3]) / 72 * 25.4
			page = append(page, shown{text, left, left + measure.GetStringWidth(text), number(t, m[4]) / 72 * 25.4})
		}
		pages = append(pages, page)
	}
	return pages
}

// decode returns the text of a PDF string in UTF-16.
func decode(raw []byte) string {
	raw = escaped.ReplaceAllFunc(raw, func(m []byte) []byte {
		if m[1] == 'r' {
			return []byte("\r")
		}
		return m[1:]
	})
	units := make([]uint16, 0, len(raw)/2)
	for pair := range slices.Chunk(raw, 2) {
		if len(pair) == 2 {
			units = append(units, uint16(pair[0])<<8|uint16(pair[1]))
		}
	}
	return string(utf16.Decode(units))
}

func number(t testing.TB, text []byte) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// textOf returns the texts of a document, one per line.
func textOf(t testing.TB, pdf []byte) string {
	t.Helper()
	var out strings.Builder
	for _, page := range pagesOfTexts(t, pdf) {
		for _, s := range page {
			out.WriteString(s.text + "\n")
		}
	}
	return out.String()
}

// mediaBox returns the size of the pages in millimeters.
func mediaBox(t testing.TB, pdf []byte) (width, height float64) {
	t.Helper()
	m := regexp.MustCompile(`/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]`).FindSubmatch(pdf)
	if m == nil {
		t.Fatal("no size of pages")
	}
	return number(t, m[1]) / 72 * 25.4, number(t, m[2]) / 72 * 25.4
}

// TestPDFPrintsTheRounding checks that a document whose total is rounded prints the difference, and that others do not.
func TestPDFPrintsTheRounding(t *testing.T) {
	t.Parallel()
	for minor, want := range map[int64]string{1005: "0.002", 1000: ""} {
		var texts []string
		for _, page := range pagesOfTexts(t, render(t, priced(t, domain.NoTerms("KWD"), "KW", domain.Line{
			Description: "Cruise", Quantity: 1, UnitAmount: minor, Taxes: []money.Tax{{Name: "VAT", Rate: money.RateOfBps(minor % 10 * 165)}},
		}))) {
			for _, s := range page {
				texts = append(texts, s.text)
			}
		}
		i := slices.Index(texts, "Rounding")
		if (i < 0) != (want == "") || want != "" && !strings.Contains(texts[i+1], want) {
			t.Errorf("%d: %q", minor, texts)
		}
	}
}
