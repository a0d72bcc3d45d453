package view

// Plain is plain.
var Plain = plain
