package api

import (
	"net/http"
	"net/url"

	"holdfast.dev/libs/contract"
	"holdfast.dev/proto/internalapi"

	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/pages"
	"holdfast.dev/services/console/internal/view"
)

// manageKeys is the permission that the pages of API keys need.
const manageKeys = "manage keys"

// keys shows the API keys of the workspace.
func keys(v *visit) error {
	if !v.w.May(manageKeys) {
		return domain.ErrForbidden
	}
	list, err := v.app.Services.Keys(v.r.Context())
	if err != nil {
		return err
	}
	out := pages.KeysView{New: v.w.Path("keys/new")}
	for _, k := range list {
		row := pages.KeyRow{ID: k.ID, Name: k.Name, Scopes: k.Scopes, Made: v.DateTime(k.CreatedAt), Used: v.T("never")}
		if k.LastUsedAt != nil {
			row.Used = v.DateTime(*k.LastUsedAt)
		}
		if k.RevokedAt != nil {
			row.Revoked = v.DateTime(*k.RevokedAt)
		} else {
			row.Revoke = v.w.Path("keys/" + k.ID + "/revoke")
		}
		out.Rows = append(out.Rows, row)
	}
	return v.show(http.StatusOK, pages.Keys(v.frame(""), out))
}

// keyForm is the form that makes an API key, with the scopes of the operator's role to choose from.
func (v *visit) keyForm() (pages.FormView, []contract.Field) {
	form := v.s.Internal["createApiKey"]
	scopes := form.Field("scopes")
	item := *scopes.Items
	item.Enum = v.w.Tenant.Scopes
	scopes.Items = &item
	return pages.FormView{
		Title: v.T("new_keys"), Action: v.w.Path("keys/new"), Back: v.w.Path("keys"), Button: v.T("save"), Preview: []string{v.T("preview_keys_new")},
	}, []contract.Field{form.Field("name"), scopes}
}

func newKey(v *visit) error {
	if !v.w.May(manageKeys) {
		return domain.ErrForbidden
	}
	if !v.recent() {
		return nil
	}
	out, fields := v.keyForm()
	return v.ask(http.StatusOK, out, fields, url.Values{}, nil, "")
}

// createKey makes an API key and shows its secret once.
func createKey(v *visit) error {
	if !v.w.May(manageKeys) {
		return domain.ErrForbidden
	}
	if !v.recent() {
		return nil
	}
	out, fields := v.keyForm()
	body, err := v.reader().Body(fields, v.form)
	if err != nil {
		return v.refused(err, out, fields)
	}
	name, _ := body["name"].(string)
	scopes, _ := body["scopes"].([]string)
	made, err := v.app.Services.CreateKey(v.r.Context(), internalapi.APIKeyCreate{Name: name, Scopes: scopes})
	if err != nil {
		return v.refused(err, out, fields)
	}
	return v.show(http.StatusOK, pages.Secret(v.frame(""), pages.SecretView{Title: made.APIKey.Name, Text: v.T("secret_once"), Secret: made.Secret, Back: v.w.Path("keys")}))
}

// revokeForm asks before a key is ended.
func (v *visit) revokeForm() (pages.FormView, error) {
	id := v.c.Param("id")
	out := pages.FormView{
		Title: v.T("action_revoke"), Action: v.w.Path("keys/" + id + "/revoke"), Back: v.w.Path("keys"), Button: v.T("action_revoke"), Danger: true,
		Preview: []string{v.T("preview_keys_revoke")},
	}
	list, err := v.app.Services.Keys(v.r.Context())
	if err != nil {
		return out, err
	}
	for _, k := range list {
		if k.ID == id {
			out.Facts = []view.Value{{Label: v.Label("name"), Kind: view.Plain, Text: k.Name}, {Label: v.Label("id"), Kind: view.Code, Text: k.ID}}
			return out, nil
		}
	}
	return out, domain.ErrNotFound
}

func revokePage(v *visit) error {
	if !v.w.May(manageKeys) {
		return domain.ErrForbidden
	}
	if !v.recent() {
		return nil
	}
	out, err := v.revokeForm()
	if err != nil {
		return err
	}
	return v.ask(http.StatusOK, out, nil, nil, nil, "")
}

func revokeKey(v *visit) error {
	if !v.w.May(manageKeys) {
		return domain.ErrForbidden
	}
	if !v.recent() {
		return nil
	}
	if err := v.app.Services.RevokeKey(v.r.Context(), v.c.Param("id")); err != nil {
		return err
	}
	return v.done("keys", "revoke")
}

// quickStart is the first call of a developer, with the address of this platform.
func quickStart(v *visit) error {
	return v.show(http.StatusOK, pages.QuickStart(v.frame(""), pages.QuickStartView{
		Base: v.s.PublicURL + "/api/v1", Docs: v.s.PublicURL + "/docs", Keys: v.w.Path("keys"), MayKeys: v.w.May(manageKeys), Mode: string(v.w.Mode),
	}))
}
