// Package charts holds the tests of the charts; there is nothing to import.
package charts
