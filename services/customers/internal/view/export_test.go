package view

import "context"

// Plain is plain.
var Plain = plain

// Bottom is where the lines of a document's pages end at most, in millimetres.
const Bottom = pageBottom

// HeadEnd returns where the head of a document ends, in millimetres.
func HeadEnd(ctx context.Context, doc Document) float64 {
	p := newPrinter(ctx, doc)
	p.AddPage()
	p.head()
	return p.GetY()
}
