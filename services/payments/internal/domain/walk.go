package domain

// Walk is how far a list of the gateway has been read that gives the newest object first. It is read page by page, from the oldest object
// to the newest, which needs an object to begin behind: the first pages go back to the oldest one. A walk is kept with its row, so that
// each page is read once, whatever ends between two of them.
type Walk struct {
	To   string // all up to this object were read; "": none was
	Back string // the oldest object on the way back, while To is ""
}
