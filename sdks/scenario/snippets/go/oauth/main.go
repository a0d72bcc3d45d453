// Command oauth creates the address at which an operator consents.
package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
)

func main() {
	// snippet authorize
	verifier, state := rand.Text()+rand.Text(), rand.Text()
	challenge := sha256.Sum256([]byte(verifier))
	address := os.Getenv("AUTH_URL") + "/oauth/authorize?" + url.Values{
		"response_type": {"code"}, "client_id": {os.Getenv("OAUTH_CLIENT_ID")}, "redirect_uri": {os.Getenv("OAUTH_REDIRECT_URI")},
		"scope": {"read:bookings"}, "state": {state}, "code_challenge_method": {"S256"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])},
	}.Encode()
	// end

	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Get(address)
	if err != nil {
		log.Fatal(err)
	}
	_ = response.Body.Close()
	fmt.Println(response.StatusCode)
}
