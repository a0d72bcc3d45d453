package view_test

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"

	"holdfast.dev/services/customers/internal/domain"
	"holdfast.dev/services/customers/internal/view"
)

// logo returns an image of a size as a tenant can have it.
func logo(t testing.TB, mediaType string, width, height int) domain.Logo {
	t.Helper()
	var out bytes.Buffer
	var err error
	if mediaType == "image/jpeg" {
		err = jpeg.Encode(&out, image.NewRGBA(image.Rect(0, 0, width, height)), nil)
	} else {
		err = png.Encode(&out, image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.White, color.Black}))
	}
	if err != nil {
		t.Fatal(err)
	}
	return domain.Logo{MediaType: mediaType, Content: out.Bytes()}
}

// drawn is an image on a page, with its edges in millimeters from the left and from the bottom.
type drawn struct {
	page                     int
	left, right, bottom, top float64
}

var drawing = regexp.MustCompile(`q ([\d.]+) 0 0 ([\d.]+) ([\d.]+) ([\d.]+) cm /I\w+ Do Q`)

// drawnOn returns the images on the pages of a document.
func drawnOn(t *testing.T, pdf []byte) (out []drawn) {
	t.Helper()
	page := 0
	for _, stream := range streams.FindAllSubmatch(pdf, -1) {
		r, err := zlib.NewReader(bytes.NewReader(stream[1]))
		if err != nil {
			continue
		}
		content, err := io.ReadAll(r)
		if err != nil || !bytes.Contains(content, []byte(" Tf ET")) {
			continue
		}
		for _, m := range drawing.FindAllSubmatch(content, -1) {
			of := func(i int) float64 { return number(t, m[i]) / 72 * 25.4 }
			out = append(out, drawn{page, of(3), of(3) + of(1), of(4), of(4) + of(2)})
		}
		page++
	}
	return out
}

// TestLogo checks that a logo of any shape is once in the document, in the upper right corner of the first page, as large as 50 × 20 mm
// allow, not distorted, and that no text overlaps it.
func TestLogo(t *testing.T) {
	t.Parallel()
	for paper, size := range map[string][2]float64{"DE": {210, 297}, "US": {215.9, 279.4}} {
		for _, c := range []struct {
			mediaType     string
			width, height int
		}{
			{"image/png", 300, 300}, {"image/png", 2000, 800}, {"image/png", 2000, 10}, {"image/jpeg", 50, 2000}, {"image/jpeg", 1, 1}, {"image/jpeg", 2000, 2000},
		} {
			name := fmt.Sprint(paper, c)
			d := document(t, "EUR", paper, line(strings.Repeat("Boat\n", 100), 1, 100, 0, 0))
			d.From = []string{strings.Repeat("W", 200), strings.Repeat("Pier 4 ", 60), "VAT ID"}
			plain := render(t, d)
			d.Logo = logo(t, c.mediaType, c.width, c.height)
			pdf := render(t, d)
			images := drawnOn(t, pdf)
			if len(images) != 1 || images[0].page != 0 || len(drawnOn(t, plain)) != 0 || bytes.Contains(plain, []byte("/Subtype /Image")) {
				t.Errorf("%s: %+v", name, images)
				continue
			}
			width, height := images[0].right-images[0].left, images[0].top-images[0].bottom
			scale := min(50/float64(c.width), 20/float64(c.height))
			near := func(a, b float64) bool { return math.Abs(a-b) < 0.02 }
			if !near(width, scale*float64(c.width)) || !near(height, scale*float64(c.height)) || !near(images[0].right, size[0]-19) || !near(images[0].top, size[1]-18) {
				t.Errorf("%s: %.3f × %.3f mm at %+v", name, width, height, images[0])
			}
			for _, text := range pagesOfTexts(t, pdf)[0] {
				if text.right > images[0].left && text.left < images[0].right && text.y+5.2 > images[0].bottom { // 5.2 mm: the ascenders of the title
					t.Errorf("%s: %q at %+v overlaps %+v", name, text.text, text, images[0])
				}
			}
			if !bytes.Equal(pdf, render(t, d)) {
				t.Errorf("%s: the same document gives other bytes", name)
			}
			if n := bytes.Count(pdf, []byte(fmt.Sprintf("/Subtype /Image\n/Width %d\n/Height %d\n", c.width, c.height))); n != 1 || c.mediaType == "image/jpeg" && !bytes.Contains(pdf, d.Logo.Content) {
				t.Errorf("%s: the document contains %d images", name, n)
			}
			if bytes.Contains(pdf, []byte("/SMask")) {
				t.Errorf("%s: the image is transparent", name)
			}
		}
	}
}

// TestAWrongLogoIsAnError checks that an image that cannot be printed is an error and not a broken document.
func TestAWrongLogoIsAnError(t *testing.T) {
	t.Parallel()
	whole := logo(t, "image/png", 10, 10)
	for name, l := range map[string]domain.Logo{
		"no image": {MediaType: "image/png", Content: []byte("x")}, "another type": {MediaType: "image/jpeg", Content: whole.Content}, "unknown type": {MediaType: "image/svg+xml", Content: whole.Content},
	} {
		d := document(t, "EUR", "DE", line("Boat", 1, 100, 0, 0))
		d.Logo = l
		if _, err := view.PDF(t.Context(), d); err == nil {
			t.Errorf("%s is printed", name)
		}
	}
}
