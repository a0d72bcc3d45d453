module holdfast.dev/examples/oauth-app

go 1.26.0

require golang.org/x/oauth2 v0.36.0
