// Package charts contains the tests of the chart. It exports nothing.
package charts
