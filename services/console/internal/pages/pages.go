// Package pages holds the pages of the operators' area: templ components, their style and scripts, and their texts in English and
// German. Pure: no I/O.
package pages

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"net/url"
	"strings"
	"sync"

	"github.com/a-h/templ"
	"golang.org/x/text/language"

	"holdfast.dev/libs/locale"

	"holdfast.dev/services/console/internal/domain"
	"holdfast.dev/services/console/internal/view"
)

//go:embed locales/*.json
var locales embed.FS

// standard is the language of the API and the default language.
var standard = language.English

// NewMessages reads the embedded texts: one file for each language.
func NewMessages() (*locale.Messages, error) { return locale.New(locales, standard) }

//go:embed all:assets console.js
var files embed.FS

// Asset is a file that pages load. Its name contains a part of its hash, so that browsers can cache it indefinitely.
type Asset struct {
	Name, Type string
	Body       []byte
}

// kinds are the media types of assets.
var kinds = map[string]string{"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}

// assets are the assets by their names without the hash.
var assets = load()

func load() map[string]Asset {
	out := map[string]Asset{}
	for _, path := range []string{"assets/style.css", "assets/htmx.js", "assets/uplot.js", "assets/uplot.css", "console.js"} {
		body, err := fs.ReadFile(files, path)
		if err != nil {
			continue // the build had no Node.js; the pages work without these assets
		}
		name := path[strings.LastIndexByte(path, '/')+1:]
		sum := sha256.Sum256(body)
		base, ending, _ := strings.Cut(name, ".")
		out[name] = Asset{Name: base + "-" + base64.RawURLEncoding.EncodeToString(sum[:9]) + "." + ending, Type: kinds[ending], Body: body}
	}
	return out
}

// Styled reports whether the build created the style of the pages.
func Styled() bool { return Style() != "" }

// Style returns the name of the style of the pages; "" if the build did not create it.
func Style() string { return assets["style.css"].Name }

// StyleSource returns the source that a content security policy must allow in addition to 'self' so that a page can contain its
// style.
var StyleSource = sync.OnceValue(func() string {
	sum := sha256.Sum256(assets["style.css"].Body)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
})

// inlineStyle returns the style as an element.
func inlineStyle() string { return "<style>" + string(assets["style.css"].Body) + "</style>" }

// Assets returns all assets by their names with hashes.
func Assets() map[string]Asset {
	out := map[string]Asset{}
	for _, a := range assets {
		out[a.Name] = a
	}
	return out
}

// asset returns the address of an asset; "" if it was not built.
func asset(name string) string {
	if a := assets[name]; a.Name != "" {
		return "/admin/-/assets/" + a.Name
	}
	return ""
}

// Frame holds the surrounding parts of every page.
type Frame struct {
	view.Format

	Workspace domain.Workspace // without a session on pages outside a workspace
	Nav       []NavGroup
	Form      string     // the token of each form
	Draft     url.Values // what was entered into the page's form earlier
	Once      string     // the idempotency key of each form
	Page      string     // the selected entry of the navigation
	OtherMode string     // the target of the switch between test and live
	Address   string     // of this page, with its query
	Theme     string     // light, dark, or "" for that of the browser
	Query     string     // of the search
	Notice    string     // confirmation of an action
	Problem   string     // description of an error
	Failed    bool       // the page shows a form again with errors
	Charts    bool       // the page has charts
	First     bool       // the browser does not have the style yet: the page contains it, to avoid a second round trip
	Live      string     // the address of the page's updates; "": none
}

// documentTitle returns the title of the document. It states first that a submitted form has errors.
func (f Frame) documentTitle(title string) string {
	if f.Failed || f.Problem != "" {
		return f.T("error_title", "Title", title)
	}
	return title
}

// withSummary returns the frame of a page that shows its errors in its own summary.
func (f Frame) withSummary(failed bool) Frame {
	f.Failed, f.Problem = failed, ""
	return f
}

// NavGroup is a group of the navigation.
type NavGroup struct {
	Name  string
	Items []NavItem
}

// NavItem is an entry of the navigation.
type NavItem struct{ Name, Href string }

// Path returns the address of a page of the workspace.
func (f Frame) Path(page string) templ.SafeURL { return templ.URL(f.Workspace.Path(page)) }

// inMode returns the address of the same kind of page in a mode.
func (f Frame) inMode(mode string) templ.SafeURL {
	return templ.URL("/admin/" + f.Workspace.Tenant.Slug + "/" + mode + "/" + f.OtherMode)
}

// with returns the address of this page with some values of its query changed; "" removes a value.
func (f Frame) with(pairs ...string) string {
	path, raw, _ := strings.Cut(f.Address, "?")
	q, _ := url.ParseQuery(raw)
	for i := 0; i+1 < len(pairs); i += 2 {
		if q.Del(pairs[i]); pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// tones are the classes of badges.
var tones = map[string]string{"good": "badge-success", "bad": "badge-error", "busy": "badge-warning", "": "badge-ghost", "calm": "badge-ghost"}

func badgeClass(tone string) string { return "badge badge-sm whitespace-nowrap " + tones[tone] }
