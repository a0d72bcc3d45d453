module holdfast.dev/services/local/stripe

go 1.26.0

require (
	github.com/caarlos0/env/v11 v11.4.2
	github.com/stripe/stripe-go/v76 v76.25.0
	github.com/stripe/stripe-mock v0.203.0
	go.etcd.io/bbolt v1.4.3
	pgregory.net/rapid v1.3.0
)

require golang.org/x/sys v0.29.0 // indirect
