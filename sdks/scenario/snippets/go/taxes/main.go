// Command taxes creates an invoice with a tax.
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
	customerID := os.Getenv("CUSTOMER_ID")

	// snippet invoice
	invoice, err := client.Invoices.Create(ctx, holdfast.InvoiceCreate{
		CustomerID: holdfast.Ptr(customerID),
		LineItems: []holdfast.LineItemInput{
			{
				Description: "Kayak tour", Quantity: 2, UnitAmount: holdfast.Price{Amount: 8000, Currency: "USD"},
				DiscountBps: holdfast.Ptr(int64(1000)), Taxes: []holdfast.TaxInput{{Name: "Sales tax", Rate: "8.875"}},
			},
			{Description: "Deposit for equipment", Quantity: 1, UnitAmount: holdfast.Price{Amount: 5000, Currency: "USD"}},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(invoice.SubtotalAmount.Amount)
	fmt.Println(invoice.DiscountAmount.Amount)
	fmt.Println(invoice.TaxAmount.Amount)
	fmt.Println(invoice.TotalAmount.Amount)
	// end
}
