// Package charts holds the tests of the chart; there is nothing to import.
package charts
