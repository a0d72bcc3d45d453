package e2e

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// assistantRedirect is where the client of an assistant waits for the code.
const assistantRedirect = "http://127.0.0.1:33418/callback"

// assistant is the official client, connected over HTTP.
type assistant struct {
	t        *testing.T
	session  *mcp.ClientSession
	consents atomic.Int64
}

var errNoPerson = errors.New("nobody consents")

// connect connects a client that knows only the address of the server. It discovers the authorization server, registers, and asks an
// operator for the scopes that admits lets through, once.
func connect(t *testing.T, mode string, admits func(scope string) bool) *assistant {
	t.Helper()
	a := &assistant{t: t}
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		RedirectURL: assistantRedirect,
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "Claude", RedirectURIs: []string{assistantRedirect}, TokenEndpointAuthMethod: "none",
		}},
		ScopeFilter: func(all []string) []string {
			return slices.DeleteFunc(slices.Clone(all), func(scope string) bool { return !admits(scope) })
		},
		AuthorizationCodeFetcher: func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			if a.consents.Add(1) > 1 {
				return nil, errNoPerson
			}
			got := newPerson(t, shared.env["AUTH_URL"]).consent(args.URL, mode)
			return &auth.AuthorizationResult{Code: got.Get("code"), State: got.Get("state"), Iss: got.Get("iss")}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	a.open(&mcp.StreamableClientTransport{Endpoint: shared.env["AUTH_URL"] + "/mcp", OAuthHandler: handler})
	return a
}

// connectWith connects a client that has a credential.
func connectWith(t *testing.T, key string) *assistant {
	t.Helper()
	a := &assistant{t: t}
	a.open(&mcp.StreamableClientTransport{Endpoint: shared.env["AUTH_URL"] + "/mcp", HTTPClient: &http.Client{Transport: keyed(key)}})
	return a
}

// keyed adds a credential to each request.
type keyed string

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(k))
	return http.DefaultTransport.RoundTrip(r)
}

func (a *assistant) open(transport mcp.Transport) {
	a.t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(a.t.Context(), transport, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	a.session = session
	a.t.Cleanup(func() { _ = session.Close() })
}

// call calls a tool, and returns its text, its structured content, and whether it failed.
func (a *assistant) call(name string, arguments map[string]any) (text string, content map[string]any, failed bool) {
	a.t.Helper()
	result, err := a.session.CallTool(a.t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		a.t.Fatalf("%s: %v", name, err)
	}
	shown, _ := result.Content[0].(*mcp.TextContent)
	content, _ = result.StructuredContent.(map[string]any)
	return shown.Text, content, result.IsError
}

// changed calls a tool that must change something, and returns the id of the object.
func (a *assistant) changed(name string, arguments map[string]any) (id string, replayed bool) {
	a.t.Helper()
	text, content, failed := a.call(name, arguments)
	result, _ := content["result"].(map[string]any)
	object, _ := result["object"].(map[string]any)
	id, _ = object["id"].(string)
	if failed || id == "" {
		a.t.Fatalf("%s: %s", name, text)
	}
	return id, content["replayed"] != nil
}

// onlyReads lets scopes through with which nothing can be changed.
func onlyReads(scope string) bool { return strings.HasPrefix(scope, "read:") }

// TestAnAssistantConnects checks that a client that knows only the address can discover, register, get consent, and book: in the mode
// of the consent, once per request_key, and visible in the request log. After the operator revokes the access, the client must ask again.
func TestAnAssistantConnects(t *testing.T) {
	a := connect(t, "test", func(string) bool { return true })
	if got := a.session.InitializeResult().Instructions; !strings.Contains(got, "in test mode") {
		t.Errorf("%s", got)
	}
	key := unique("assistant")
	customer, _ := a.changed("create_customer", map[string]any{"first_name": "Ada", "email": key + "@example.com", "request_key": key})
	own := shared.as(t, "DEMO_TEST_KEY")
	unit := own.want(t, http.StatusCreated, http.MethodPost, "/units", `{"name":"Kayak"}`).id(t)
	hold := map[string]any{"unit_id": unit, "date": "2033-05-07", "start_time": "09:00", "end_time": "11:00", "customer_id": customer, "request_key": key}
	booking, replayed := a.changed("hold_slot", hold)
	again, replayedAgain := a.changed("hold_slot", hold)
	if booking != again || replayed || !replayedAgain {
		t.Errorf("%s (replayed %t), then %s (replayed %t)", booking, replayed, again, replayedAgain)
	}
	if n := len(own.list(t, "/bookings?customer_id="+customer)); n != 1 {
		t.Errorf("%d bookings", n)
	}
	if text, _, failed := connect(t, "live", onlyReads).call("get_record", map[string]any{"id": booking}); !failed || !strings.Contains(text, "mode_mismatch") {
		t.Errorf("in live mode: %s", text)
	}
	if text, _, failed := connectWith(t, shared.env["OTHER_TEST_KEY"]).call("get_record", map[string]any{"id": booking}); !failed || !strings.Contains(text, "booking_not_found") {
		t.Errorf("as another tenant: %s", text)
	}
	var credential string
	for end := time.Now().Add(30 * time.Second); credential == "" && time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		for _, entry := range own.list(t, "/request-logs?object_id="+booking) {
			if entry["route"] == "/bookings" {
				credential, _ = entry["credential_id"].(string)
			}
		}
	}
	if !strings.HasPrefix(credential, "gr_") {
		t.Fatalf("the request log names %q as the credential of the booking", credential)
	}
	if entries := own.list(t, "/request-logs?method=POST&limit=100"); slices.ContainsFunc(entries, func(e map[string]any) bool { return e["route"] == "/mcp" }) {
		t.Error("the request log has the messages in addition to the requests of their tools")
	}
	shared.identity(t, nil, "grant", "revoke", credential)
	if _, err := a.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "get_tenant"}); err == nil || a.consents.Load() != 2 {
		t.Errorf("after the revocation: %v, consent was requested %d times", err, a.consents.Load())
	}
}

// TestAnAssistantOnlyReads checks that an assistant without write scopes has no tool that changes data, and that an API key works too.
func TestAnAssistantOnlyReads(t *testing.T) {
	reader, writer := connect(t, "test", onlyReads), connectWith(t, shared.env["DEMO_TEST_KEY"])
	for name, test := range map[string]struct {
		a      *assistant
		writes bool
	}{"an app that may read": {reader, false}, "a key with all scopes": {writer, true}} {
		list, err := test.a.session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		changes := slices.ContainsFunc(list.Tools, func(tool *mcp.Tool) bool { return !tool.Annotations.ReadOnlyHint })
		if changes != test.writes || len(list.Tools) < 11 {
			t.Errorf("%s: %d tools, of which some change data: %t", name, len(list.Tools), changes)
		}
	}
	if text, _, failed := reader.call("hold_slot", map[string]any{"date": "2033-05-07", "request_key": "x"}); !failed || !strings.Contains(text, "connect this server again") {
		t.Errorf("%s", text)
	}
}
