package domain_test

import (
	"testing"

	"holdfast.dev/services/console/internal/domain"
)

// TestCredentialsAndSettingsRequireThePassword checks that all operations that create, change, or delete something in the groups
// developers and settings require the password again. A test delivery does not.
func TestCredentialsAndSettingsRequireThePassword(t *testing.T) {
	t.Parallel()
	harmless := map[string]bool{"endpoints test": true}
	for _, r := range domain.Resources {
		if r.Group != domain.Developers && r.Group != domain.Settings {
			continue
		}
		if (r.Create != "" || r.Update != "") && !r.Fresh {
			t.Errorf("%s: creating or changing one does not require the password", r.Name)
		}
		for _, a := range r.Actions {
			if !a.Fresh && !harmless[r.Name+" "+a.Name] {
				t.Errorf("%s: %s does not require the password", r.Name, a.Name)
			}
		}
	}
}
