// Command authentication shows the credential that it uses.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	holdfast "holdfast.dev/sdks/go"
)

func main() {
	ctx := context.Background()

	// snippet me
	client, err := holdfast.New(
		holdfast.WithBaseURL(os.Getenv("HOLDFAST_BASE_URL")),
		holdfast.WithAPIKey(os.Getenv("HOLDFAST_API_KEY")),
	)
	if err != nil {
		log.Fatal(err)
	}
	me, err := client.Me.Get(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(me.Type)
	fmt.Println(me.Mode)
	// end
}
