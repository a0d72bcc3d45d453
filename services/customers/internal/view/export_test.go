package view

// Plain, Regular and Locales export plain, the font and the texts for tests.
var (
	Plain   = plain
	Regular = regular
	Locales = locales
)
