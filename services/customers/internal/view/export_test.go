package view

// Plain exports plain for tests.
var Plain = plain
