package view

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"codeberg.org/go-pdf/fpdf"

	"holdfast.dev/libs/money"

	"holdfast.dev/services/customers/internal/domain"
)

// The page in millimeters.
const (
	margin     = 18.0
	footHeight = 22.0
	lineHeight = 4.6
	rowSpace   = 1.6
	minLines   = 2   // lines of a description that stay together
	headHeight = 7.6 // of the table's head, with the space below it
	// The largest logo, and the space below a logo.
	logoWidth  = 50.0
	logoHeight = 20.0
	logoSpace  = 4.0
	// The rows of the totals.
	totalHeight = 6.0
	totalWidth  = 80.0 // of the names
	amountWidth = 40.0
	smallest    = 5.0 // font size

	// MaxPages is the largest number of pages of a document. If its texts need more, the longest ones are cut.
	MaxPages = 60
	// The numbers of text lines that fit on MaxPages, besides the heads, the totals and the empty ends of pages.
	maxTableLines = 1700
	maxTextLines  = 500
	maxHeadLines  = 300 // of one column of the head; the longest names and addresses need fewer

	// alias stands for the number of pages until it is known. It consists of private-use characters, which plain removes from
	// texts.
	alias = "\ue0e1\ue0e1"
	cut   = "…"

	fontName = "NotoSans"
)

// columns are the columns of the table, with the ids of their names. The first one takes the rest of the page's width.
var columns = []struct {
	name  string
	width float64
	align string
}{
	{"line", 0, "L"}, {"quantity", 18, "R"}, {"unit_price", 27, "R"}, {"discount", 18, "R"}, {"tax", 20, "R"}, {"amount", 23, "R"},
}

// printer draws one document.
type printer struct {
	*fpdf.Fpdf

	ctx           context.Context //nolint:containedctx // of the one document
	doc           Document
	width, bottom float64 // of the page, in millimeters; below the bottom is only the page number
	description   float64 // width of the first column
}

// PDF prints a document on at most MaxPages pages, unless ctx ends before. The same document always results in the same bytes.
func PDF(ctx context.Context, doc Document) ([]byte, error) {
	p := newPrinter(ctx, doc)
	p.SetFooterFunc(p.footer)
	p.AddPage()
	p.head()
	p.table()
	p.totals()
	p.texts()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := p.Output(&out); err != nil {
		return nil, fmt.Errorf("print %s %s: %w", doc.Title, doc.Number, err)
	}
	return out.Bytes(), nil
}

func newPrinter(ctx context.Context, doc Document) printer {
	paper := "A4"
	if doc.Letter {
		paper = "Letter"
	}
	p := printer{Fpdf: fpdf.New("P", "mm", paper, ""), ctx: ctx, doc: doc}
	width, height := p.GetPageSize()
	p.width, p.bottom, p.description = width, height-footHeight, width-2*margin
	for _, c := range columns {
		p.description -= c.width
	}
	p.AddUTF8FontFromBytes(fontName, "", regular)
	p.AddUTF8FontFromBytes(fontName, "B", bold)
	p.SetCatalogSort(true)
	p.SetCreationDate(doc.Issued.UTC().Truncate(time.Second))
	p.SetModificationDate(doc.Issued.UTC().Truncate(time.Second))
	p.SetLang(doc.Language.texts.Lang)
	p.SetTitle(plain(doc.Title+" "+doc.Number), true)
	p.SetMargins(margin, margin, margin)
	p.SetAutoPageBreak(false, 0)
	p.AliasNbPages(alias)
	return p
}

func (p printer) style(style string, size float64, grey int) {
	p.SetFont(fontName, style, size)
	p.SetTextColor(grey, grey, grey)
}

// wrap breaks a text into lines of a width. It returns no lines for "", or after the end of the context. It merges consecutive
// blank lines and removes those at both ends of the text.
func (p printer) wrap(text string, width float64) []string {
	text = strings.Trim(blankLines.ReplaceAllString(plain(text), "\n\n"), nbsp+" \n")
	if text == "" || p.ctx.Err() != nil {
		return nil
	}
	var lines []string
	for _, paragraph := range strings.Split(text, "\n") {
		lines = append(lines, p.fill([]rune(paragraph), width-2*p.GetCellMargin())...)
	}
	return lines
}

// fill breaks a paragraph at spaces into lines of a width. It does not break at non-breaking spaces unless a word is wider than a line.
func (p printer) fill(text []rune, width float64) (lines []string) {
	start, space, used := 0, -1, 0.0
	for i := 0; i < len(text); i++ {
		if text[i] == ' ' {
			space = i
		}
		if used += p.GetStringWidth(string(text[i])); used <= width || i == start {
			continue
		}
		end, next := i, i
		if space >= start {
			end, next = space, space+1
		}
		lines = append(lines, string(text[start:end]))
		start, i, space, used = next, next-1, -1, 0
	}
	return append(lines, string(text[start:]))
}

var blankLines = regexp.MustCompile(`\n(?:[ \x{a0}]*\n){2,}`)

// shorten returns at most n lines. The last one shows that further lines were cut.
func shorten(lines []string, n int) []string {
	if len(lines) <= n {
		return lines
	}
	return append(slices.Clone(lines[:n-1]), cut)
}

// fairShare returns the largest number of lines per text with which all texts together have at most n lines. It is at least 1.
func fairShare(texts [][]string, n int) int {
	lengths := make([]int, len(texts))
	for i, lines := range texts {
		lengths[i] = len(lines)
	}
	slices.Sort(lengths)
	for i, length := range lengths { // short texts keep all their lines; the longer ones share the rest
		share := n / (len(lengths) - i)
		if length > share {
			return max(1, share)
		}
		n -= length
	}
	return max(1, n)
}

// look is the style of a text.
type look struct {
	style string
	size  float64
	grey  int
}

// cell is one line of a text in a column.
type cell struct {
	look

	x, width float64
	align    string
	text     string
}

// column returns the lines of texts one below the other, with each text wrapped to the width.
func (p printer) column(form cell, texts ...string) []cell {
	p.style(form.style, form.size, form.grey)
	var out []cell
	for _, text := range texts {
		for _, line := range p.wrap(text, form.width) {
			form.text = line
			out = append(out, form)
		}
	}
	return out
}

// columns writes columns side by side from y on, over as many pages as the longest one needs. It returns where they end. It cuts a
// column after maxHeadLines lines.
func (p printer) columns(y float64, columns ...[]cell) float64 {
	for i := range maxHeadLines {
		var row []cell
		for _, c := range columns {
			if i < len(c) {
				row = append(row, c[i])
			}
		}
		if len(row) == 0 {
			break
		}
		y = p.room(y, lineHeight)
		for _, c := range row {
			if i == maxHeadLines-1 {
				c.text = cut
			}
			p.style(c.style, c.size, c.grey)
			p.SetXY(c.x, y)
			p.CellFormat(c.width, lineHeight, c.text, "", 0, c.align, false, 0, "")
		}
		y += lineHeight
	}
	return y
}

// room returns y, or the top of the next page if the height does not fit below y.
func (p printer) room(y, height float64) float64 {
	if y+height <= p.bottom {
		return y
	}
	p.AddPage()
	return margin
}

// logo draws the logo in the upper right corner, as large as possible. It returns where the text below it begins.
func (p printer) logo() float64 {
	if p.doc.Logo.Content == nil {
		return margin
	}
	options := fpdf.ImageOptions{ImageType: p.ImageTypeFromMime(p.doc.Logo.MediaType)}
	image := p.RegisterImageOptionsReader("logo", options, bytes.NewReader(p.doc.Logo.Content))
	if p.Err() {
		return margin // Output returns the error
	}
	scale := min(logoWidth/image.Width(), logoHeight/image.Height())
	width, height := scale*image.Width(), scale*image.Height()
	p.ImageOptions("logo", p.width-margin-p.GetCellMargin()-width, margin, width, height, false, options, 0, "")
	return margin + height + logoSpace
}

// head writes the logo, the title, the operator, the recipient and the facts, over as many pages as they need.
func (p printer) head() {
	half, top := p.width/2-margin, p.logo()
	p.style("B", 20, 20)
	p.SetXY(p.width/2, top)
	p.CellFormat(half, 8, plain(p.doc.Title), "", 0, "R", false, 0, "")
	p.style("", 11, 90)
	p.SetXY(p.width/2, top+9)
	p.CellFormat(half, 5, plain(p.doc.Number), "", 0, "R", false, 0, "")
	y := p.operator(half)
	if p.PageNo() == 1 {
		y = max(y, top+20)
	}
	y = p.room(y+10, 5+minLines*lineHeight)
	p.style("", 8, 130)
	p.SetXY(margin, y)
	p.CellFormat(half, 4, p.text("to"), "", 0, "L", false, 0, "")
	to := p.column(cell{look{"", 10, 20}, margin, half, "L", ""}, p.doc.To...)
	names, values := p.facts(p.width/2+8, half-8)
	y = p.columns(y+5, to, names, values)
	p.SetY(p.room(y+10, headHeight+minLines*lineHeight))
}

// operator writes the issuer of the document and returns where the text ends.
func (p printer) operator(width float64) float64 {
	y := p.columns(margin, p.column(cell{look{"B", 12, 20}, margin, width, "L", ""}, p.doc.From[0]))
	return p.columns(y+1, p.column(cell{look{"", 9, 90}, margin, width, "L", ""}, p.doc.From[1:]...))
}

// text returns a text of the document's language.
func (p printer) text(id string, pairs ...any) string {
	return plain(p.doc.Language.texts.T(id, pairs...))
}

// facts returns the names of the facts and, next to each, the lines of its value.
func (p printer) facts(x, width float64) (names, values []cell) {
	for _, f := range p.doc.Facts {
		name := cell{look{"", 9, 90}, x, width / 2, "L", plain(f.Name)}
		value := p.column(cell{look{"", 9, 20}, x + width/2, width / 2, "R", ""}, f.Value)
		if len(value) == 0 {
			value = []cell{{}}
		}
		values = append(values, value...)
		names = append(names, name)
		names = append(names, make([]cell, len(value)-1)...)
	}
	return names, values
}

// table writes the lines. It repeats the head on each page.
func (p printer) table() {
	p.tableHead()
	descriptions := make([][]string, len(p.doc.Lines))
	for i, l := range p.doc.Lines {
		descriptions[i] = p.wrap(l.Description, p.description-3)
	}
	share := fairShare(descriptions, maxTableLines)
	for i, l := range p.doc.Lines {
		p.row(shorten(descriptions[i], share), []string{
			p.doc.Language.Number(strconv.FormatInt(l.Quantity, 10)), p.minor(l.UnitAmount), p.discount(l), p.rates(l), p.minor(l.Amounts.Amount),
		})
	}
}

// minor formats an amount in the smallest unit of the document's currency.
func (p printer) minor(n int64) string {
	return p.doc.Language.Amount(money.Amount{Minor: n, Currency: p.doc.Currency})
}

// discount formats the discount of a line: the percentage if it is the only one, else the amount. It returns "" for none.
func (p printer) discount(l domain.Line) string {
	switch {
	case l.Amounts.Discount == 0:
		return ""
	case l.DiscountBps != 0 && p.doc.Totals.DiscountTotal.IsZero():
		return p.doc.Language.Percent(money.RateOfBps(l.DiscountBps))
	default:
		return "−" + p.minor(l.Amounts.Discount)
	}
}

// rates formats the rates of the taxes of a line, such as "5 + 9.975%". It returns "" for none.
func (p printer) rates(l domain.Line) string {
	var out []string
	for i, tax := range l.Taxes {
		if i < len(l.Taxes)-1 {
			out = append(out, p.doc.Language.Number(tax.Rate.String()))
		} else {
			out = append(out, p.doc.Language.Percent(tax.Rate))
		}
	}
	return strings.Join(out, " + ")
}

func (p printer) tableHead() {
	p.style("B", 8.5, 90)
	p.SetX(margin)
	for i, c := range columns {
		p.fit(p.columnWidth(i), headHeight-rowSpace, p.text(c.name), "B", c.align)
	}
	p.SetY(p.GetY() + headHeight)
	p.style("", 9, 20)
}

// columnWidth returns the width of a column of the table.
func (p printer) columnWidth(i int) float64 {
	if i == 0 {
		return p.description
	}
	return columns[i].width
}

// row writes a line, with the values next to the first line of the description. The description may continue on further pages.
func (p printer) row(lines, values []string) {
	if len(lines) == 0 {
		lines = []string{""}
	}
	if p.GetY()+float64(min(len(lines), minLines))*lineHeight > p.bottom {
		p.nextPage(true)
	}
	for i, line := range lines {
		if p.GetY()+lineHeight > p.bottom {
			p.nextPage(true)
		}
		p.SetX(margin)
		p.CellFormat(p.description, lineHeight, line, "", 0, "L", false, 0, "")
		for j, v := range values {
			if i == 0 {
				p.fit(p.columnWidth(j+1), lineHeight, v, "", "R")
			}
		}
		p.SetY(p.GetY() + lineHeight)
	}
	p.SetY(p.GetY() + rowSpace)
}

// fit writes a text in a cell, in a smaller font if the text is wider than the cell.
func (p printer) fit(width, height float64, text, border, align string) {
	text = plain(text)
	normal, _ := p.GetFontSize()
	for size := normal; size > smallest && p.GetStringWidth(text) > width-2; {
		size -= 0.5
		p.SetFontSize(size)
	}
	p.CellFormat(width, height, text, border, 0, align, false, 0, "")
	p.SetFontSize(normal)
}

func (p printer) nextPage(table bool) {
	p.AddPage()
	p.SetY(margin)
	if table {
		p.tableHead()
	}
}

// totals writes the sums, each tax with its net amount, and what follows the total. If they fit on one page, they are on one page.
func (p printer) totals() {
	t := p.doc.Totals
	l := p.doc.Language
	rows := []Fact{{p.text("subtotal"), l.Amount(t.Subtotal)}}
	if !t.Discount.IsZero() {
		rows = append(rows, Fact{p.text("discount"), "−" + l.Amount(t.Discount)})
	}
	taxes := p.taxes()
	if t.Behavior != domain.TaxInclusive {
		rows, taxes = append(rows, taxes...), nil
	}
	if !t.Rounding.IsZero() {
		rows = append(rows, Fact{p.text("rounding"), l.Amount(t.Rounding)})
	}
	total := len(rows)
	rows = append(rows, Fact{p.text("total"), l.Amount(t.Total)})
	rows = append(rows, taxes...)
	rows = append(rows, p.doc.After...)
	if height := float64(len(rows))*totalHeight + 4; p.GetY()+height > p.bottom && margin+height <= p.bottom {
		p.nextPage(false)
	}
	p.SetY(p.GetY() + 2)
	for i, r := range rows {
		if p.GetY()+totalHeight > p.bottom {
			p.nextPage(false)
		}
		p.style("", 9, 60)
		border := ""
		if i == total {
			p.style("B", 10.5, 20)
			border = "T"
		}
		p.SetX(p.width - margin - totalWidth - amountWidth)
		p.fit(totalWidth, totalHeight, r.Name, border, "L")
		p.fit(amountWidth, totalHeight, r.Value, border, "R")
		p.SetY(p.GetY() + totalHeight)
	}
}

// taxes returns the breakdown of the taxes: the net amount, the rate and the tax of each row.
func (p printer) taxes() []Fact {
	id := "tax_on"
	if p.doc.Totals.Behavior == domain.TaxInclusive {
		id = "tax_included"
	}
	out := make([]Fact, len(p.doc.Totals.Breakdown))
	for i, r := range p.doc.Totals.Breakdown {
		out[i] = Fact{p.text(id, "Name", r.Name, "Rate", p.doc.Language.Percent(r.Rate), "Net", p.minor(r.Taxable)), p.minor(r.Amount)}
	}
	return out
}

// texts writes the notes below the table, over as many pages as they need.
func (p printer) texts() {
	p.style("", 9, 40)
	values := make([][]string, len(p.doc.Texts))
	for i, f := range p.doc.Texts {
		values[i] = p.wrap(f.Value, p.width-2*margin)
	}
	share := fairShare(values, maxTextLines)
	for i, f := range p.doc.Texts {
		p.SetY(p.GetY() + 6)
		if f.Name != "" {
			p.style("B", 9, 60)
			p.paragraph([]string{plain(f.Name)})
		}
		p.style("", 9, 40)
		p.paragraph(shorten(values[i], share))
	}
}

func (p printer) paragraph(lines []string) {
	for _, line := range lines {
		if p.GetY()+lineHeight > p.bottom {
			p.nextPage(false)
		}
		p.SetX(margin)
		p.CellFormat(0, lineHeight, line, "", 0, "L", false, 0, "")
		p.SetY(p.GetY() + lineHeight)
	}
}

// footer writes the page number. The library restores the font afterwards.
func (p printer) footer() {
	p.style("", 8, 130)
	p.SetXY(margin, -14)
	p.CellFormat(0, 5, plain(p.doc.Title+" "+p.doc.Number), "", 0, "L", false, 0, "")
	p.SetXY(margin, -14)
	p.CellFormat(0, 5, p.doc.Language.texts.T("page", "Page", p.PageNo(), "Pages", alias), "", 0, "R", false, 0, "")
}
