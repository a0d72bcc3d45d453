package domain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// currencies are the currencies that Stripe accepts.
var currencies = strings.Fields(`usd aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bhd bif bmd bnd bob brl bsd bwp byn bzd
cad cdf chf clp cny cop crc cve czk djf dkk dop dzd egp etb eur fjd fkp gbp gel gip gmd gnf gtq gyd hkd hnl htg huf idr ils inr isk
jmd jod jpy kes kgs khr kmf krw kwd kyd kzt lak lbp lkr lrd lsl mad mdl mga mkd mmk mnt mop mur mvr mwk mxn myr mzn nad ngn nio nok
npr nzd omr pab pen pgk php pkr pln pyg qar ron rsd rub rwf sar sbd scr sek sgd shp sle sos srd std szl thb tjs tnd top try ttd twd
tzs uah ugx uyu uzs vnd vuv wst xaf xcd xof xpf yer zar zmw`)

var (
	zeroDecimal  = strings.Fields("bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf")
	threeDecimal = strings.Fields("bhd jod kwd omr tnd")
	// wholeUnits have no decimals, but their amounts are specified with two.
	wholeUnits = strings.Fields("isk ugx")
)

// minimum is Stripe's minimum charge, in the smallest unit. For other currencies, Stripe converts 0.50 USD. Here, their minimum is
// 1.
var minimum = map[string]int64{
	"usd": 50, "aed": 200, "aud": 50, "bgn": 100, "brl": 50, "cad": 50, "chf": 50, "czk": 1500, "dkk": 250, "eur": 50, "gbp": 30,
	"hkd": 400, "huf": 17500, "inr": 50, "jpy": 50, "mxn": 1000, "myr": 200, "nok": 300, "nzd": 50, "pln": 200, "ron": 200,
	"sek": 300, "sgd": 50, "thb": 1000,
}

// maximumDigits contains the maximum number of digits for currencies of small value. All others have eight.
var maximumDigits = map[string]int{"idr": 12, "lbp": 12, "cop": 10, "huf": 10, "jpy": 10, "inr": 9}

// CheckCurrency returns the error for a currency that Stripe does not accept.
func CheckCurrency(code string) *Error {
	if slices.Contains(currencies, code) {
		return nil
	}
	return Invalid("", "currency", "Invalid currency: "+code+". Stripe currently supports these currencies: "+strings.Join(currencies, ", "))
}

// CheckAmount returns the error for an amount that Stripe cannot charge.
func CheckAmount(amount int64, currency string) *Error {
	if low := max(minimum[currency], 1); amount < low {
		return Invalid("amount_too_small", "amount", "Amount must be at least "+Format(low, currency))
	}
	if high := maximum(currency); amount > high {
		return Invalid("amount_too_large", "amount", "Amount must be no more than "+Format(high, currency))
	}
	return CheckLastDigits(amount, currency, "amount")
}

// CheckLastDigits returns the error for an amount whose last digits must be 0 in this currency.
func CheckLastDigits(amount int64, currency, param string) *Error {
	switch {
	case slices.Contains(threeDecimal, currency) && amount%10 != 0:
		return Invalid("invalid_charge_amount", param,
			fmt.Sprintf("Invalid amount: the last digit of an amount in %s must be 0. Round %d to the nearest ten.", currency, amount))
	case slices.Contains(wholeUnits, currency) && amount%100 != 0:
		return Invalid("invalid_charge_amount", param,
			fmt.Sprintf("Invalid amount: an amount in %s must be divisible by 100, but it is %d.", currency, amount))
	default:
		return nil
	}
}

func maximum(currency string) int64 {
	digits := maximumDigits[currency]
	if digits == 0 {
		digits = 8
	}
	high := int64(1)
	for range digits {
		high *= 10
	}
	return high - 1
}

// Format formats an amount as in Stripe's messages.
func Format(amount int64, currency string) string {
	decimals := 2
	switch {
	case slices.Contains(zeroDecimal, currency):
		decimals = 0
	case slices.Contains(threeDecimal, currency):
		decimals = 3
	}
	text := strconv.FormatInt(amount, 10)
	if decimals > 0 {
		for len(text) <= decimals {
			text = "0" + text
		}
		text = text[:len(text)-decimals] + "." + text[len(text)-decimals:]
	}
	if sign := map[string]string{"usd": "$", "eur": "€", "gbp": "£", "jpy": "¥"}[currency]; sign != "" {
		return sign + text + " " + currency
	}
	return text + " " + currency
}
