package peers

import (
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

// proxied counts the connections to the proxy that the environment names.
var proxied atomic.Int64

// TestMain sets a proxy in the environment before the tests, and checks that they leave no goroutine.
func TestMain(m *testing.M) {
	proxy, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := proxy.Accept()
			if err != nil {
				return
			}
			proxied.Add(1)
			_ = c.Close()
		}
	}()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"} {
		_ = os.Setenv(name, "http://"+proxy.Addr().String())
	}
	_ = os.Unsetenv("NO_PROXY")
	_ = os.Unsetenv("no_proxy")
	code := m.Run()
	_ = proxy.Close()
	<-done
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, "left running:", err)
		code = 1
	}
	os.Exit(code)
}
