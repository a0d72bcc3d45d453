package redisx

import (
	"context"
	"errors"
	"net/url"

	"github.com/redis/go-redis/v9"

	"holdfast.dev/libs/secret"
)

var (
	errURL   = errors.New("not a valid URL") // the text contains a password
	errMoved = errors.New("only the user and the password can change while the process runs: restart it for another address")
)

// follow makes new connections use the user and password of the setting's newest value. Open connections stay logged in.
func follow(o *redis.UniversalOptions, first *url.URL, login secret.Setting) error {
	if login.Get() == "" {
		return nil
	}
	current, err := secret.Follow(login, func(text string) (*url.Userinfo, error) {
		u, err := url.Parse(text)
		if err != nil {
			return nil, errURL
		}
		if u.Scheme != first.Scheme || u.Host != first.Host || u.Path != first.Path || u.RawQuery != first.RawQuery {
			return nil, errMoved
		}
		return u.User, nil
	})
	if err != nil {
		return err
	}
	o.CredentialsProviderContext = func(context.Context) (user, password string, err error) {
		u := current()
		password, _ = u.Password()
		return u.Username(), password, nil
	}
	return nil
}
