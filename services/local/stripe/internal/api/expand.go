package api

import (
	"bytes"
	"encoding/json"
	"net/http"
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
	var tree map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	}
	for _, path := range paths {
		parts := strings.Split(path, ".")
		if len(parts) > maxExpand {
			return nil, domain.BadParam("", "expand", "You cannot expand more than 4 levels of a property. Property: "+path)
		}
		if err := c.expand(tree, parts, path); err != nil {
			return nil, err
		}
	}
	return json.Marshal(tree)
}

// expand replaces the id at the path with its object.
func (c *call) expand(tree map[string]any, parts []string, path string) error {
	if len(parts) == 0 {
		return nil
	}
	name := parts[0]
	value, there := tree[name]
	if !there {
		var err error
		if value, there, err = c.unshown(tree, name); err != nil {
			return err
		}
	}
	switch value := value.(type) {
	case map[string]any:
		return c.expand(value, parts[1:], path)
	case []any:
		for _, item := range value {
			if object, ok := item.(map[string]any); ok {
				if err := c.expand(object, parts[1:], path); err != nil {
					return err
				}
			}
		}
		return nil
	case string:
		object, err := c.expanded(value)
		if err != nil || object == nil {
			return notExpandable(err, path)
		}
		tree[name] = object
		return c.expand(object, parts[1:], path)
	}
	if there {
		return nil // null
	}
	return notExpandable(nil, path)
}

// unshown returns a property that an object contains only if the request expands it, or only in some states. there is false if the
// object has no such property.
func (c *call) unshown(tree map[string]any, name string) (value any, there bool, err error) {
	switch {
	case name == "refunds" && tree["object"] == "charge":
		refunds, err := c.refundsOf(tree)
		tree[name] = refunds
		return refunds, err == nil, err
	case name == "failure_balance_transaction" && tree["object"] == "refund":
		return nil, true, nil // the refund did not fail
	default:
		return nil, false, nil
	}
}

func notExpandable(err error, path string) error {
	if err != nil {
		return err
	}
	return domain.BadParam("", "expand", "This property cannot be expanded ("+path+").")
}

// expanded returns the object with an id; nil if the text is not an id.
func (c *call) expanded(id string) (map[string]any, error) {
	prefix, _, _ := strings.Cut(id, "_")
	kind := store.Kind(prefix)
	if !slices.Contains(store.Kinds, kind) || c.Tx.Raw(c.Scope, kind, id) == nil {
		return nil, nil //nolint:nilnil // none is no error
	}
	object, err := c.load(kind, id)
	if err != nil {
		return nil, err
	}
	return tree(object)
}

func tree(object any) (map[string]any, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var t map[string]any
	return t, decoder.Decode(&t)
}

// refundsOf returns the list of refunds that a charge contains if the request expands it.
func (c *call) refundsOf(charge map[string]any) (map[string]any, error) {
	id, _ := charge["id"].(string)
	page := List{Object: "list", Data: []json.RawMessage{}, URL: "/v1/charges/" + id + "/refunds"}
	for refund := range c.Tx.Indexed(c.Scope, "re.charge", id, "") {
		if len(page.Data) == defaultLimit {
			page.HasMore = true
			break
		}
		page.Data = append(page.Data, slices.Clone(c.Tx.Raw(c.Scope, store.Refunds, refund)))
	}
	return tree(page)
}

// load returns an object as the API shows it.
func (c *call) load(kind store.Kind, id string) (any, error) {
	switch kind {
	case store.Methods:
		return c.Method(id)
	case store.Events:
		return c.Event(id)
	case store.Endpoints:
		return c.Endpoint(id)
	default: // shown as it is stored
	}
	text := c.Tx.Raw(c.Scope, kind, id)
	if text == nil {
		return nil, domain.Missing(http.StatusNotFound, objectNames[kind], id, "id")
	}
	return json.RawMessage(slices.Clone(text)), nil
}
