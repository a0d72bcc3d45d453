package store

const (
	RareMatches = rareMatches
	WalkLookups = walkLookups
)
