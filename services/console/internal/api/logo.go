package api

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/httpx"

	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/pages"
	"holdfast.dev/services/console/internal/view"
)

// logoPath is the route of the forms that set and remove the logo, which are on the page above it.
const logoPath = workspaces + "/business/logo"

// logoView returns the forms of the tenant's logo.
func (f *form) logoView(o domain.Object) *pages.LogoView {
	out := pages.LogoView{Action: f.workspace.Path("business/logo"), Input: f.Inputs(f.fields("setTenantLogo", []string{"logo"}), nil, nil)[0]}
	if o.Text("logo_hash") != "" {
		out.Image = f.workspace.Path("logo")
	}
	return &out
}

// saveLogo sets the uploaded logo, or removes the current one.
func saveLogo(p *page) error {
	if !p.can("setTenantLogo") {
		return domain.ErrForbidden
	}
	if !p.requireRecentSignIn() {
		return nil
	}
	body := map[string]any{"logo": nil}
	if !p.posted.Has("remove") {
		body["logo"] = base64.StdEncoding.EncodeToString([]byte(p.posted.Get("logo")))
	}
	if _, err := p.submit(domain.Request{Operation: "setTenantLogo", Body: body}); err != nil {
		return p.refusedLogo(err)
	}
	return p.done("business", "saved")
}

// refusedLogo shows the business page, with the current settings and the error of the logo.
func (p *page) refusedLogo(err error) error {
	e := apperr.As(err)
	o, failed := p.tenantSettings()
	if e.Kind == apperr.Forbidden || failed != nil {
		return err
	}
	out, fields := p.settingsForm("business", o)
	inputs := []view.Input{out.Logo.Input}
	others := view.AssignFaults(inputs, p.faults(err))
	out.Logo.Input = inputs[0]
	return p.showForm(httpx.StatusOf(e.Kind), out, fields, p.reader().Form(fields, o), others, p.verdict(err))
}

// showLogo responds with the tenant's logo.
func showLogo(p *page) error {
	if !p.can("setTenantLogo") {
		return domain.ErrForbidden
	}
	o, err := p.app.Do(p.r.Context(), domain.Request{Operation: "lookupTenantLogo", Params: []string{p.workspace.Tenant.ID.String()}})
	var e *apperr.Error
	if errors.As(err, &e) && e.Kind == apperr.NotFound {
		return domain.ErrNotFound.WithCause(err)
	}
	if err != nil {
		return err
	}
	content, err := base64.StdEncoding.DecodeString(o.Text("logo"))
	mediaType := http.DetectContentType(content)
	if err != nil || mediaType != o.Text("media_type") || !slices.Contains([]string{"image/png", "image/jpeg"}, mediaType) {
		return domain.ErrNotFound.WithCause(err)
	}
	return p.sendFile(mediaType, "inline", bytes.NewReader(content))
}
