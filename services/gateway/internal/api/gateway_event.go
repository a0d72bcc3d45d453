package api

import (
	"crypto/sha256"
	"net/http"

	"github.com/gin-gonic/gin"

	"holdfast.dev/libs/httpx"
	"holdfast.dev/libs/obs"
)

// gatewayEventPath is the path to which a payment gateway sends the events of an account. The operator registers it at the gateway.
const gatewayEventPath = "/gateway/stripe/:account"

// mountGatewayEvents registers the path of payment gateways' events. It is not in the contract, because it has no credential.
// payments verifies the signature over the bytes that were sent.
func (s *Server) mountGatewayEvents(router *gin.Engine) {
	mount(router, gatewayEventPath, map[string]gin.HandlersChain{http.MethodPost: httpx.Steps(rejectQueryKey, s.proxyGatewayEvent)})
}

// proxyGatewayEvent forwards an event. Its rate and its bytes are counted per account and address, so that a stranger who knows an
// account's path cannot block the gateway's own events.
func (s *Server) proxyGatewayEvent(c *gin.Context) error {
	r := c.Request
	obs.SetRoute(r.Context(), gatewayEventPath)
	address := s.address(r)
	account := c.Param("account")
	hash := sha256.Sum256([]byte(account + "\x00" + address))
	call, free, err := s.ownCall(c, "account:"+string(hash[:]), address)
	defer free()
	if err != nil {
		return err
	}
	call.Path, call.ContentType, call.Signature = "/internal/v1/gateway-events/"+account, "application/json", r.Header.Get("Stripe-Signature")
	response, err := s.Pipeline.Accounts.Forward(r.Context(), s.Pipeline, "payments", call, hash)
	if err != nil {
		return err
	}
	s.write(c, &response)
	return nil
}
