// Package charts holds the tests of the chart. It exports nothing.
package charts
