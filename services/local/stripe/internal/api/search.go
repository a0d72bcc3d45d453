package api

import (
	"encoding/json"
	"iter"
	"regexp"
	"slices"
	"strings"

	"holdfast.dev/services/local/stripe/internal/domain"
	"holdfast.dev/services/local/stripe/internal/store"
)

// clause is one condition of a search: metadata['k']:'v', status:'succeeded', created>1700000000.
type clause struct {
	field, name, operator, value string
}

var (
	clausePattern = regexp.MustCompile(`^\s*(-?)([a-z_]+)(?:\[(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\])?\s*(:|>=|<=|>|<)\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([0-9]+|null))`)
	andPattern    = regexp.MustCompile(`^\s+(?i:and)\s+`)
	escaped       = regexp.MustCompile(`\\(.)`)
)

// clauses parses a query. Clauses are joined by AND. OR and ~ are not supported.
func clauses(query string) ([]clause, *domain.Error) {
	var all []clause
	for rest := query; ; {
		m := clausePattern.FindStringSubmatch(rest)
		if m == nil || m[1] != "" {
			return nil, domain.BadParam("", "query", "We were unable to parse your search query. Try using the format `metadata[\"key\"]:\"value\"` to query for metadata or key:\"value\" to query for other fields. The stand-in joins clauses by AND only.")
		}
		all = append(all, clause{field: m[2], name: plain(m[3] + m[4]), operator: m[5], value: plain(m[6]+m[7]) + m[8]})
		rest = rest[len(m[0]):]
		if strings.TrimSpace(rest) == "" {
			return all, nil
		}
		and := andPattern.FindString(rest)
		if and == "" {
			return nil, domain.BadParam("", "query", "We were unable to parse your search query: clauses are joined by AND.")
		}
		rest = rest[len(and):]
	}
}

func plain(text string) string { return escaped.ReplaceAllString(text, "$1") }

// holds reports whether an intent meets the clause.
func (k clause) holds(pi *domain.Intent) (bool, *domain.Error) {
	switch k.field {
	case "metadata":
		value, there := pi.Metadata[k.name]
		return there && value == k.value && k.operator == ":", nil
	case "status":
		return string(pi.Status) == k.value, nil
	case "currency":
		return pi.Currency == strings.ToLower(k.value), nil
	case "customer":
		return pi.Customer != nil && *pi.Customer == k.value, nil
	case "amount":
		return k.compare(pi.Amount), nil
	case "created":
		return k.compare(pi.Created), nil
	default:
		return false, domain.BadParam("", "query", "Field `"+k.field+"` is an unsupported search field for resource `payment_intents`.")
	}
}

func (k clause) compare(value int64) bool {
	n, ok := number(k.value)
	if !ok {
		return false
	}
	switch k.operator {
	case ">":
		return value > n
	case ">=":
		return value >= n
	case "<":
		return value < n
	case "<=":
		return value <= n
	default:
		return value == n
	}
}

// SearchResult is the response of a search.
type SearchResult struct {
	Object   string            `json:"object"`
	Data     []json.RawMessage `json:"data"`
	HasMore  bool              `json:"has_more"`
	NextPage *string           `json:"next_page"`
	URL      string            `json:"url"`
}

func searchIntents(c *call) (any, error) {
	query, limit, after := c.form.Required("query"), c.limit(), c.form.Or("page", "")
	if err := c.form.Err(); err != nil {
		return nil, err
	}
	conditions, bad := clauses(query)
	if bad != nil {
		return nil, bad
	}
	newest := c.Tx.Now().Add(-c.server.SearchDelay).Unix()
	page := &SearchResult{Object: "search_result", Data: []json.RawMessage{}, URL: c.path}
	last := ""
	for id, text := range c.candidates(conditions, after) {
		found, err := meets(text, conditions, newest)
		if err != nil {
			return nil, err
		}
		if !found {
			continue
		}
		if len(page.Data) == limit {
			page.HasMore, page.NextPage = true, &last
			break
		}
		page.Data = append(page.Data, slices.Clone(text))
		last = id
	}
	return page, nil
}

func meets(text []byte, conditions []clause, newest int64) (bool, error) {
	var pi domain.Intent
	if err := json.Unmarshal(text, &pi); err != nil {
		return false, err
	}
	if pi.Created > newest {
		return false, nil
	}
	for _, k := range conditions {
		if ok, bad := k.holds(&pi); bad != nil {
			return false, bad
		} else if !ok {
			return false, nil
		}
	}
	return true, nil
}

// candidates returns the intents with the metadata of the first metadata clause, or else all intents.
func (c *call) candidates(conditions []clause, after string) iter.Seq2[string, []byte] {
	for _, k := range conditions {
		if k.field == "metadata" {
			return c.walk(store.Intents, source{"pi.metadata", k.name + "\x00" + k.value}, after, "")
		}
	}
	return c.walk(store.Intents, source{}, after, "")
}
