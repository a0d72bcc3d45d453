package api_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"image"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"

	"holdfast.dev/libs/caller"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/identity/internal/domain"
)

const logoPath = settings + "/logo"

// logoBody returns the body that sets an image as the logo.
func logoBody(upload []byte) string {
	return `{"logo":"` + base64.StdEncoding.EncodeToString(upload) + `"}`
}

// drawing returns a PNG image of a size.
func drawing(t *testing.T, width, height int) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// photo returns a JPEG image that is nearly as large as an upload can be.
func photo(t *testing.T) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, domain.MaxLogoSide, domain.MaxLogoSide))
	_, _ = rand.NewChaCha8([32]byte{}).Read(img.Pix[:2_100_000])
	var out bytes.Buffer
	if err := jpeg.Encode(&out, img, &jpeg.Options{Quality: 40}); err != nil {
		t.Fatal(err)
	}
	if n := out.Len(); n > domain.MaxLogoBytes || n < domain.MaxLogoBytes*9/10 {
		t.Fatalf("the photo has %d bytes", n)
	}
	return out.Bytes()
}

// TestLogo checks that the console sets and removes the logo of its own tenant, that each change is one version with one audit record, and
// that only services of the tenant itself receive the logo.
func TestLogo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, owner := w.newTenant()
	other, otherOwner := w.newTenant()
	ctx, customers := w.as(owner, tenant, caller.Test), w.service("customers", tenant.ID, caller.Live)
	path := "/internal/v1/tenants/" + tenant.ID.String() + "/logo"
	w.from(customers, "customers", "GET", path, "").is(404, "logo_not_found")

	var hashes []string
	for _, upload := range [][]byte{drawing(t, 30, 20), photo(t)} {
		var set internalapi.Tenant
		for range 2 { // the second changes nothing
			set = decode[internalapi.Tenant](w.from(ctx, "console", "PUT", logoPath, logoBody(upload)).is(200))
		}
		got := decode[internalapi.TenantLogo](w.from(customers, "customers", "GET", path, "").is(200))
		content, err := base64.StdEncoding.DecodeString(got.Logo)
		if err != nil {
			t.Fatal(err)
		}
		hash := sha256.Sum256(content)
		_, format, err := image.DecodeConfig(bytes.NewReader(content))
		if *set.LogoHash != got.Hash || got.Hash != hex.EncodeToString(hash[:]) || err != nil || got.MediaType != "image/"+format {
			t.Errorf("%q, %q, %s as %s: %v", *set.LogoHash, got.Hash, format, got.MediaType, err)
		}
		w.from(ctx, "console", "GET", path, "").is(200)
		hashes = append(hashes, got.Hash)
	}
	w.from(ctx, "console", "PATCH", settings, `{"name":"New"}`).is(200) // leaves the logo alone
	if got := decode[internalapi.TenantLogo](w.from(customers, "customers", "GET", path, "").is(200)); got.Hash != hashes[1] {
		t.Errorf("after another change %q", got.Hash)
	}

	foreign := w.as(otherOwner, other, caller.Test)
	w.from(foreign, "console", "GET", path, "").is(404, "tenant_not_found")
	w.from(w.service("customers", other.ID, caller.Live), "customers", "GET", path, "").is(404, "tenant_not_found")
	w.from(foreign, "console", "GET", "/internal/v1/tenants/"+other.ID.String()+"/logo", "").is(404, "logo_not_found")
	for _, peer := range []string{"", "gateway", "bookings"} {
		w.from(customers, peer, "GET", path, "").is(401, "invalid_credential")
		w.from(ctx, peer, "PUT", logoPath, `{"logo":null}`).is(401, "invalid_credential")
	}

	for range 2 {
		if got := decode[internalapi.Tenant](w.from(ctx, "console", "PUT", logoPath, `{"logo":null}`).is(200)); *got.LogoHash != "" || got.PolicyVersion != 5 {
			t.Errorf("removed: %+v", got)
		}
	}
	w.from(customers, "customers", "GET", path, "").is(404, "logo_not_found")
	records := w.records(tenant, domain.TenantUpdated)
	if len(records) != 4 {
		t.Fatalf("%d records", len(records))
	}
	for i, want := range []string{hashes[0], hashes[1], hashes[1], ""} {
		if r := records[i]; r.Actor != owner.ID.String() || !strings.Contains(string(r.After), `"logo_hash": "`+want+`"`) || len(r.After) > 5000 {
			t.Errorf("record %d, want %q: %s", i, want, r.After)
		}
	}
	if n := w.Count(`select count(*) from tenants where logo is not null`); n != 0 {
		t.Errorf("%d logos are left", n)
	}
}

// TestWrongLogos checks that the field of an invalid logo is named and that nothing changes.
func TestWrongLogos(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, owner := w.newTenant()
	ctx := w.as(owner, tenant, caller.Live)
	w.from(ctx, "console", "PUT", logoPath, logoBody(drawing(t, 30, 20))).is(200)
	for body, message := range map[string]string{
		`{}`: "Is required.", `{"logo":1}`: "Must be a string or null.", `{"logo":"*"}`: "Must be Base64.", `{"logo":""}`: "Must be a PNG or JPEG image.",
		logoBody([]byte("<svg/>")): "Must be a PNG or JPEG image.", logoBody(drawing(t, 2001, 1)): "Must be at most 2,000 pixels wide and 2,000 pixels high.",
		logoBody(drawing(t, 30, 20)[:40]): "The image is damaged.", logoBody(make([]byte, 700_000)): "Must be at most 256 KiB.",
	} {
		a := w.from(ctx, "console", "PUT", logoPath, body, strict).is(422, "invalid_request", "logo")
		if !strings.Contains(string(a.Body), message) {
			t.Errorf("%.40s: %s", body, a.Body)
		}
	}
	w.from(ctx, "console", "PUT", logoPath, logoBody(make([]byte, 1<<20))).is(413, "request_too_large")
	if n := w.Count(`select count(*) from tenants where version = 2 and logo_hash = encode(sha256(logo), 'hex')`); n != 1 {
		t.Error("a wrong logo has changed the tenant")
	}
}
