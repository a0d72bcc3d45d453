package store

import (
	"encoding/json"

	"holdfast.dev/services/local/stripe/internal/domain"
)

// PutAccount stores an account.
func (t *Tx) PutAccount(a domain.Account) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return t.bucket(accountBucket).Put([]byte(a.ID), text)
}

// Accounts lists all accounts.
func (t *Tx) Accounts() ([]domain.Account, error) {
	var all []domain.Account
	err := t.bucket(accountBucket).ForEach(func(_, text []byte) error {
		var a domain.Account
		err := json.Unmarshal(text, &a)
		all = append(all, a)
		return err
	})
	return all, err
}

// Scopes lists both modes of every account.
func (t *Tx) Scopes() ([]domain.Scope, error) {
	accounts, err := t.Accounts()
	var all []domain.Scope
	for _, a := range accounts {
		all = append(all, domain.Scope{Account: a.ID}, domain.Scope{Account: a.ID, Live: true})
	}
	return all, err
}
