package domain

import (
	"regexp"
	"time"

	"holdfast.dev/libs/apperr"
	"holdfast.dev/libs/ids"
	"holdfast.dev/libs/quota"
)

type viewPrefix struct{}

func (viewPrefix) Prefix() string { return "view" }

// ViewID is the public id of a saved view.
type ViewID = ids.ID[viewPrefix]

// NewViewID creates a new id.
func NewViewID() ViewID { return ids.New[viewPrefix]() }

// ErrViewNotFound reports that a saved view does not exist or belongs to another operator.
var ErrViewNotFound = apperr.New(apperr.NotFound, "view_not_found", "Saved view not found.")

// ParseViewID parses a view's public id. It returns ErrViewNotFound for anything else.
func ParseViewID(s string) (ViewID, error) {
	id, err := ids.Parse[viewPrefix](s)
	if err != nil {
		return ViewID{}, ErrViewNotFound
	}
	return id, nil
}

// The maximum number of views of an operator at a tenant: for one list, and in total.
const (
	MaxViews    = 50
	MaxAllViews = 500
)

// The limits of a view's texts, in characters.
const (
	maxViewName  = 100
	maxViewQuery = 2000
)

// SavedView is a named query of one of the console's lists, saved by an operator at one tenant for both modes.
type SavedView struct {
	ID        ViewID
	List      string
	Name      string
	Query     string
	CreatedAt time.Time
}

var listForm = regexp.MustCompile(`^[a-z][a-z_-]{0,49}$`)

// Check returns a 422 with every invalid field, or nil.
func (v SavedView) Check() error {
	var wrong []apperr.FieldError
	want := func(ok bool, field, message string) {
		if !ok {
			wrong = append(wrong, apperr.FieldError{Field: field, Message: message})
		}
	}
	want(listForm.MatchString(v.List), "list", "Must be the name of a list, such as bookings.")
	want(isLine(v.Name, 1, maxViewName), "name", "Must be one visible line of 1 to 100 characters.")
	want(isText(v.Query, 0, maxViewQuery), "query", "Must be at most 2000 characters.")
	if len(wrong) > 0 {
		return apperr.Fields(wrong)
	}
	return nil
}

// ViewRoom returns nil if one more view fits into its list and the total, otherwise a 422.
func ViewRoom(inList, inAll int) error {
	if inList < MaxViews && inAll < MaxAllViews {
		return nil
	}
	return quota.ErrReached.WithMessage("At most %d saved views per list and %d in total are allowed. Delete one first.", MaxViews, MaxAllViews).WithField("name")
}
