package control

import (
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"holdfast.dev/services/local/stripe/internal/domain"
	"holdfast.dev/services/local/stripe/internal/store"
)

var accountID = regexp.MustCompile(`^acct_[A-Za-z0-9]{1,40}$`)

// createAccount creates an account. Fields that the body omits are generated.
func (s *Server) createAccount(r *http.Request) (any, error) {
	in := domain.Account{Country: "US", DefaultCurrency: "usd", Email: "owner@example.com"}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	return s.Create(in)
}

// Create stores an account. If the id already exists, it replaces the keys of the account.
func (s *Server) Create(a domain.Account) (domain.Account, error) {
	if a.ID == "" {
		a.ID = "acct_1" + store.Random(16)
	}
	if !accountID.MatchString(a.ID) {
		return a, errors.New("an account's id is acct_ and letters and digits")
	}
	if err := domain.CheckCurrency(a.DefaultCurrency); err != nil {
		return a, err
	}
	if err := s.fillKeys(&a.Keys); err != nil {
		return a, err
	}
	err := s.App.DB.Update(func(t *store.Tx) error {
		if a.Created == 0 {
			a.Created = t.Now().Unix()
		}
		return t.PutAccount(a)
	})
	if err == nil {
		s.Keys.Add(a)
	}
	return a, err
}

// fillKeys creates the missing keys and checks the prefixes of the others.
func (s *Server) fillKeys(k *domain.Keys) error {
	for prefix, key := range map[string]*string{
		"sk_test_": &k.TestSecret, "pk_test_": &k.TestPublishable, "sk_live_": &k.LiveSecret, "pk_live_": &k.LivePublishable,
	} {
		switch {
		case *key == "":
			*key = prefix + store.Random(32)
		case !strings.HasPrefix(*key, prefix):
			return errors.New("a key begins with " + prefix)
		case s.Keys.Has(*key):
			return errors.New("another account has a key that begins with " + prefix)
		}
	}
	return nil
}

// snapshot returns all objects of one mode of an account, the oldest first.
func (s *Server) snapshot(r *http.Request) (any, error) {
	scope := domain.Scope{Account: r.PathValue("id"), Live: r.URL.Query().Get("mode") == "live"}
	all := map[string][]json.RawMessage{}
	err := s.App.DB.View(func(t *store.Tx) error {
		for name, kind := range map[string]store.Kind{
			"payment_intents": store.Intents, "charges": store.Charges, "refunds": store.Refunds, "disputes": store.Disputes,
			"balance_transactions": store.Movements,
		} {
			all[name] = []json.RawMessage{}
			for _, text := range t.Oldest(scope, kind, "") {
				all[name] = append(all[name], slices.Clone(text))
			}
		}
		return nil
	})
	return all, err
}
