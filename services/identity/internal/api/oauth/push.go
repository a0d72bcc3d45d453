package oauth

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/ory/fosite"

	"holdfast.dev/services/identity/internal/app"
	"holdfast.dev/services/identity/internal/domain"
)

const (
	pushedURI      = "urn:ietf:params:oauth:request_uri:"
	pushedLifetime = 10 * time.Minute // time for an operator to sign in and decide
	maxPushed      = 3 << 10          // bytes of the parameters: the request URI contains them and must fit into a browser's address
)

// wrongPushed reports a request URI that this server did not create for the app, or that is too old: RFC 9126, section 4.
const wrongPushed mistakeError = "invalid_request_uri: the request URI is unknown, of another app, or older than ten minutes"

// push accepts an authorization request from the app itself and returns a URI for it: RFC 9126. The URI is the encrypted request,
// so nothing is stored. It can be opened several times, because an operator returns with it after the sign-in. A code is bound to
// its challenge in any case.
func (s *Server) push(c *gin.Context) error {
	ctx, r, err := s.form(c)
	if err != nil {
		return s.refuse(ctx, c.Writer, err)
	}
	uri, err := s.seal(ctx, r.PostForm, networkOf(r.Header.Get("X-Forwarded-For")))
	if err != nil {
		return s.refuse(ctx, c.Writer, err)
	}
	c.Header("Cache-Control", "no-store")
	c.JSON(http.StatusCreated, map[string]any{"request_uri": uri, "expires_in": int(pushedLifetime.Seconds())})
	return nil
}

// seal checks an authorization request from a network and creates its URI.
func (s *Server) seal(ctx context.Context, params url.Values, network string) (string, error) {
	if params.Get("request_uri") != "" {
		return "", fosite.ErrInvalidRequest.WithHint("request_uri cannot be pushed.")
	}
	a, err := s.appOf(ctx, params, app.DocumentSource{Network: network})
	var mistake mistakeError
	switch {
	case errors.Is(err, wrongClient):
		return "", fosite.ErrInvalidClient
	case errors.As(err, &mistake):
		code, hint, _ := strings.Cut(mistake.Error(), ": ")
		if code == "invalid_client" && domain.IsClientURL(params.Get("client_id")) {
			return "", fosite.ErrInvalidClient.WithHint(hint + ".")
		}
		return "", fosite.ErrInvalidRequest.WithHint(hint + ".")
	case err != nil:
		return "", exchangeOf(ctx).failed(err, nil)
	}
	if err := s.check(ctx, a); err != nil {
		return "", err
	}
	text := params.Encode()
	if len(text) > maxPushed {
		return "", fosite.ErrInvalidRequest.WithHint("The parameters are larger than 3 KiB.")
	}
	plain := binary.BigEndian.AppendUint64(nil, uint64(s.Now().Add(pushedLifetime).Unix()))
	sealed, err := s.Box.Seal(append(plain, text...), []byte(pushedURI))
	if err != nil {
		return "", exchangeOf(ctx).failed(err, nil)
	}
	return pushedURI + base64.RawURLEncoding.EncodeToString(sealed), nil
}

// pushed opens a request URI of the app. The rest of the query is ignored.
func (s *Server) pushed(uri string, client []string) (url.Values, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(uri, pushedURI))
	if err != nil {
		return nil, wrongPushed
	}
	plain, err := s.Box.Open(sealed, []byte(pushedURI))
	if err != nil || len(plain) < 8 || s.Now().Unix() >= int64(binary.BigEndian.Uint64(plain)) {
		return nil, wrongPushed
	}
	params, err := url.ParseQuery(string(plain[8:]))
	if err != nil || !slices.Equal(params["client_id"], client) {
		return nil, wrongPushed
	}
	return params, nil
}
