package domain

// Account is an account of the stand-in with its keys.
type Account struct {
	ID              string `json:"id"`
	Country         string `json:"country"`
	DefaultCurrency string `json:"default_currency"`
	Email           string `json:"email"`
	Created         int64  `json:"created"`
	Keys            Keys   `json:"keys"`
}

// Keys are an account's API keys.
type Keys struct {
	TestSecret      string `json:"test_secret"`
	TestPublishable string `json:"test_publishable"`
	LiveSecret      string `json:"live_secret"`
	LivePublishable string `json:"live_publishable"`
}

// Key describes the access that an API key grants.
type Key struct {
	Scope       Scope
	Publishable bool
}

// Scope is one mode of one account. Scopes never share data.
type Scope struct {
	Account string `json:"account"`
	Live    bool   `json:"live"`
}

// Prefix returns the prefix of every stored key of the scope.
func (s Scope) Prefix() string {
	if s.Live {
		return s.Account + "/live/"
	}
	return s.Account + "/test/"
}

// ByKey returns the keys with the access that they grant.
func (a Account) ByKey() map[string]Key {
	test, live := Scope{Account: a.ID}, Scope{Account: a.ID, Live: true}
	return map[string]Key{
		a.Keys.TestSecret: {Scope: test}, a.Keys.TestPublishable: {Scope: test, Publishable: true},
		a.Keys.LiveSecret: {Scope: live}, a.Keys.LivePublishable: {Scope: live, Publishable: true},
	}
}

// PublicAccount is the response to GET /v1/account.
type PublicAccount struct {
	ID               string            `json:"id"`
	Object           string            `json:"object"`
	BusinessType     *string           `json:"business_type"`
	ChargesEnabled   bool              `json:"charges_enabled"`
	Country          string            `json:"country"`
	Created          int64             `json:"created"`
	DefaultCurrency  string            `json:"default_currency"`
	DetailsSubmitted bool              `json:"details_submitted"`
	Email            string            `json:"email"`
	Metadata         map[string]string `json:"metadata"`
	PayoutsEnabled   bool              `json:"payouts_enabled"`
	Type             string            `json:"type"`
}

// Public returns the account without its keys.
func (a Account) Public() PublicAccount {
	return PublicAccount{
		ID: a.ID, Object: "account", ChargesEnabled: true, Country: a.Country, Created: a.Created, DefaultCurrency: a.DefaultCurrency,
		DetailsSubmitted: true, Email: a.Email, Metadata: map[string]string{}, PayoutsEnabled: true, Type: "standard",
	}
}
