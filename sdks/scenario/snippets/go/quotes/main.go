// Command quotes turns a quote into a booking and an invoice, and records a payment.
package main

import (
	"context"
	"fmt"
	"io"
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
	customerID, unitID, packageID := os.Getenv("CUSTOMER_ID"), os.Getenv("UNIT_ID"), os.Getenv("PACKAGE_ID")

	// snippet quote
	quote, err := client.Quotes.Create(ctx, holdfast.QuoteCreate{
		CustomerID: customerID, UnitID: holdfast.Set(unitID), PackageID: holdfast.Set(packageID),
		EventDate: holdfast.Set("2027-07-03"), EventStartTime: holdfast.Set("09:00"),
	})
	if err != nil {
		log.Fatal(err)
	}
	quote, err = client.Quotes.Send(ctx, quote.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(quote.Status)
	// end

	// snippet accept
	quote, err = client.Quotes.Accept(ctx, quote.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(quote.Status)
	invoice, err := client.Invoices.Get(ctx, quote.InvoiceIDs[0], holdfast.InvoicesGetParams{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(invoice.Kind)
	fmt.Println(invoice.Status)
	fmt.Println(invoice.AmountDue.Amount)
	// end

	// snippet pay
	invoice, err = client.Invoices.RecordPayment(ctx, invoice.ID, holdfast.InvoicePaymentCreate{
		Amount: holdfast.Payable{Amount: 2000, Currency: "USD"}, Method: holdfast.ManualPaymentMethodCash,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(invoice.Status)
	document, err := client.Invoices.GetPDF(ctx, invoice.ID)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = document.Close() }()
	file, err := os.Create("invoice.pdf")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := io.Copy(file, document); err != nil {
		log.Fatal(err)
	}
	if err := file.Close(); err != nil {
		log.Fatal(err)
	}
	// end
}
