// Command correction credits a part of an invoice, and then the rest.
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
	client, err := holdfast.New()
	if err != nil {
		log.Fatal(err)
	}
	invoiceID := os.Getenv("INVOICE_ID")

	// snippet part
	note, err := client.Invoices.CreateCreditNote(ctx, invoiceID, holdfast.CreditNoteCreate{
		Amount: holdfast.Set(holdfast.Payable{Amount: 3000, Currency: "USD"}), Reason: holdfast.Set("One kayak less"),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(note.Status)
	fmt.Println(note.TotalAmount.Amount)
	// end

	// snippet rest
	rest, err := client.Invoices.CreateCreditNote(ctx, invoiceID, holdfast.CreditNoteCreate{Reason: holdfast.Set("Wrong date")})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(rest.TotalAmount.Amount)
	invoice, err := client.Invoices.Get(ctx, invoiceID, holdfast.InvoicesGetParams{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(invoice.Status)
	fmt.Println(invoice.AmountCredited.Amount)
	fmt.Println(invoice.AmountDue.Amount)
	// end
}
