package domain

import (
	"slices"
	"strings"

	"holdfast.dev/proto"
)

// Resource describes the pages of a kind of resource: what they show and offer. The contract defines the types and bounds of its
// fields.
type Resource struct {
	Name   string // of its pages and texts, in the plural: bookings
	Prefix string // of its ids: bk
	Group  string // of the navigation; "": other pages lead to it

	List, Get, Create, Update string // operationIds; "" where there is none
	ListQuery                 map[string]string

	Title    []string // fields, the first non-empty one is its title
	Columns  []string
	Filters  []string // query parameters
	Sections []Section
	New      []string // fields of the form that creates one
	Edit     []string // fields of the form that changes one
	Actions  []Action
	Related  []Related
	Except   []string // fields of the contract that are shown and requested only if the lists above name them
	Events   bool     // it has events
	PDF      string
	Whole    bool   // its list is complete and contains each resource: no call returns a single one
	Fresh    bool   // creating or changing one requires the password again
	Needs    string // the permission to see its list; "" if the call requires it
}

// Resources are the resources of the API, in the order of the navigation, with all fields of the public contract. Fields that the
// table does not name are at the end of the first section and of the forms.
var Resources = completed(resourceTable, proto.OperationFields)

// everywhere are the fields of every response that pages show in a different form.
var everywhere = []string{"id", "object", "mode", "version"}

func completed(table []Resource, of map[string]proto.Fields) []Resource {
	out := slices.Clone(table)
	for i := range out {
		r := &out[i]
		r.New = r.with(r.New, r.New, of[r.Create].Body)
		r.Edit = r.with(r.Edit, r.Edit, of[r.Update].Body)
		if len(r.Sections) == 0 {
			continue
		}
		var shown []string
		for _, s := range r.Sections {
			shown = append(shown, s.Fields...)
		}
		r.Sections = slices.Clone(r.Sections)
		r.Sections[0].Fields = r.with(r.Sections[0].Fields, shown, of[r.Get].Response)
	}
	return out
}

// with appends the contract's fields that are neither in named nor in Except to a list. It returns nil for nil: the resource has
// no form.
func (r *Resource) with(list, named, fields []string) []string {
	if list == nil {
		return nil
	}
	out := slices.Clone(list)
	for _, name := range fields {
		if !slices.Contains(named, name) && !slices.Contains(r.Except, name) && !slices.Contains(everywhere, name) {
			out = append(out, name)
		}
	}
	return out
}

// Section is a group of fields on the page of a resource.
type Section struct {
	Name   string
	Fields []string
}

// Related is a list of other resources on the page of one.
type Related struct {
	Resource string
	Filter   string // the query parameter that contains the id
	Field    string // the field of the resource that contains this value; "": its id
}

// Action is an action on a resource.
type Action struct {
	Name      string // of its page and texts: cancel
	Operation string
	From      []string          // statuses that allow it; nil: all
	Started   bool              // it requires that the booking has started
	Unless    string            // the field of a quote that rules it out; "": none
	Fields    []string          // of the body, requested in a form
	Required  []string          // those that the form requires although the operation does not
	Fixed     map[string]string // of the body; for a Page, the initial values of its form
	Body      string            // the field of the body for the resource's id; "": it is in the path
	Page      bool              // it leads to the form of another resource
	Fresh     bool              // it requires the password again
	Danger    bool
	Secret    bool // its response contains a secret
}

// AllowedIn reports whether a resource of that status allows the action.
func (a Action) AllowedIn(status string) bool {
	return a.From == nil || slices.Contains(a.From, status)
}

// HasPage reports whether each of its resources has a page.
func (r *Resource) HasPage() bool { return r.Get != "" || r.Whole }

// Action returns the action with a name; nil if there is none.
func (r *Resource) Action(name string) *Action {
	i := slices.IndexFunc(r.Actions, func(a Action) bool { return a.Name == name })
	if i < 0 {
		return nil
	}
	return &r.Actions[i]
}

// TitleOf returns the title of a resource: its number or name, else its id.
func (r *Resource) TitleOf(o Object) string {
	var parts []string
	for _, name := range r.Title {
		if s := o.Text(name); s != "" {
			parts = append(parts, s)
			if name != "first_name" {
				break
			}
		}
	}
	if len(parts) == 0 {
		return o.Text("id")
	}
	return strings.Join(parts, " ")
}

// ResourceNamed returns the resource of a page's name; nil if there is none.
func ResourceNamed(name string) *Resource {
	i := slices.IndexFunc(Resources, func(r Resource) bool { return r.Name == name })
	if i < 0 {
		return nil
	}
	return &Resources[i]
}

// ResourceOf returns the resource that the prefix of an id belongs to; nil if there is none.
func ResourceOf(id string) *Resource {
	prefix, rest, ok := strings.Cut(id, "_")
	if !ok || rest == "" {
		return nil
	}
	i := slices.IndexFunc(Resources, func(r Resource) bool { return r.Prefix == prefix })
	if i < 0 {
		return nil
	}
	return &Resources[i]
}
