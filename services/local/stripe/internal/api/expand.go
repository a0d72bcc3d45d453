package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"holdfast.dev/services/local/stripe/internal/domain"
	"holdfast.dev/services/local/stripe/internal/store"
)

// maxExpand is the maximum depth of an expansion.
const maxExpand = 4

// render returns the result with its expansions as JSON.
func (c *call) render(result any) ([]byte, error) {
	text, err := json.Marshal(result)
	paths := c.form.List("expand")
	if err != nil || len(paths) == 0 {
		return text, err
	}
	object, err := tree(text)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		parts := strings.Split(path, ".")
		if len(parts) > maxExpand {
			return nil, domain.BadParam("", "expand", "You cannot expand more than 4 levels of a property. Property: "+path)
		}
		if err := c.expand(object, parts, path); err != nil {
			return nil, err
		}
	}
	return json.Marshal(object)
}

// expand replaces the id at the path with its object.
func (c *call) expand(object map[string]any, parts []string, path string) error {
	if len(parts) == 0 {
		return nil
	}
	name := parts[0]
	value, there := object[name]
	if !there {
		var err error
		if value, there, err = c.unshown(object, name); err != nil {
			return err
		}
	}
	switch value := value.(type) {
	case map[string]any:
		return c.expand(value, parts[1:], path)
	case []any:
		return c.expandAll(value, parts[1:], path)
	case string:
		inner, err := c.expanded(value)
		if err != nil || inner == nil {
			return cmp.Or(err, notExpandable(path))
		}
		object[name] = inner
		return c.expand(inner, parts[1:], path)
	case nil:
		if there {
			return nil
		}
	}
	return notExpandable(path)
}

// expandAll expands the path in each object of a list.
func (c *call) expandAll(list []any, parts []string, path string) error {
	for _, item := range list {
		if object, ok := item.(map[string]any); ok {
			if err := c.expand(object, parts, path); err != nil {
				return err
			}
		}
	}
	return nil
}

func notExpandable(path string) error {
	return domain.BadParam("", "expand", "This property cannot be expanded ("+path+").")
}

// unshown returns a property that an object contains only if the request expands it, or only in some states. there is false if the
// object has no such property.
func (c *call) unshown(object map[string]any, name string) (value any, there bool, err error) {
	switch {
	case name == "refunds" && object["object"] == "charge":
		refunds, err := c.refundsOf(object)
		object[name] = refunds
		return refunds, err == nil, err
	case name == "failure_balance_transaction" && object["object"] == "refund":
		return nil, true, nil // the refund did not fail
	default:
		return nil, false, nil
	}
}

// expanded returns the charge or the balance transaction with an id; nil if the text is not such an id.
func (c *call) expanded(id string) (map[string]any, error) {
	prefix, _, _ := strings.Cut(id, "_")
	kind := store.Kind(prefix)
	if kind != store.Charges && kind != store.Movements {
		return nil, nil //nolint:nilnil // none is no error
	}
	text := c.Tx.Raw(c.Scope, kind, id)
	if text == nil {
		return nil, nil //nolint:nilnil // none is no error
	}
	return tree(text)
}

func tree(text []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var t map[string]any
	return t, decoder.Decode(&t)
}

// refundsOf returns the list of refunds that a charge contains if the request expands it. All refunds of an intent are of the same
// charge.
func (c *call) refundsOf(charge map[string]any) (map[string]any, error) {
	id, _ := charge["id"].(string)
	intent, _ := charge["payment_intent"].(string)
	page := List{Object: "list", Data: []json.RawMessage{}, URL: "/v1/charges/" + id + "/refunds"}
	for _, text := range c.Tx.OfIntent(c.Scope, store.Refunds, intent, "") {
		if len(page.Data) == defaultLimit {
			page.HasMore = true
			break
		}
		page.Data = append(page.Data, slices.Clone(text))
	}
	text, err := json.Marshal(page)
	if err != nil {
		return nil, err
	}
	return tree(text)
}
