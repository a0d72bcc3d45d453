package domain

import "testing"

func TestVATNumbers(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		"DE123456789": true, "de 123 456 789": true, "ATU12345678": true, "FRXX123456789": true, "ESX1234567X": true, "EL123456789": true, "XI123456789": true,
		"CHE-123.456.789 MWST": true, "NL001234567B01": true, "12/345/67890": false, "12-3456789": false, "US 12-3456789": false, "DE": false, "": false,
		"ITALY": false,
	} {
		if got := IsVATNumber(id); got != want {
			t.Errorf("%q: %v", id, got)
		}
	}
}
