package money

import (
	"errors"
	"math/big"
	"slices"
)

// ErrWeights reports weights by which an amount cannot be allocated: one is negative, or all of them are 0.
var ErrWeights = errors.New("no weights to allocate by")

// Allocate splits the amount in proportion to the weights by the largest remainder, so that the parts add up to it: each part is
// rounded down, and what is left goes to the parts that lost most, one unit each. Of equal ones, the earlier comes first. The unit is
// the currency's Step, or 1 if the amount is no multiple of it. A part is 0 if its weight is. If the amount is at most the sum of the
// weights, and all of them are multiples of the unit, no part exceeds its weight. An amount of 0 needs no weights. Allocate returns
// ErrWeights for a weight below 0, or if every weight is 0 and the amount is not.
func (a Amount) Allocate(weights []int64) ([]Amount, error) {
	w := make([]big.Int, len(weights))
	for i, n := range weights {
		if n < 0 {
			return nil, ErrWeights
		}
		w[i].SetInt64(n)
	}
	parts, err := a.allocate(w)
	if err != nil {
		return nil, err
	}
	out := make([]Amount, len(parts))
	for i, part := range parts {
		out[i] = Amount{Minor: part, Currency: a.Currency}
	}
	return out, nil
}

// allocate is Allocate with weights of any size, none of them negative. It returns minor units.
func (a Amount) allocate(weights []big.Int) ([]int64, error) {
	parts := make([]int64, len(weights))
	if a.Minor == 0 {
		return parts, nil
	}
	sum := new(big.Int)
	for i := range weights {
		sum.Add(sum, &weights[i])
	}
	if sum.Sign() == 0 {
		return nil, ErrWeights
	}
	unit := Step(a.Currency)
	if a.Minor%unit != 0 {
		unit = 1
	}
	if a.Minor < 0 {
		unit = -unit
	}
	left := a.Minor / unit // not negative
	units, part, rests, order := big.NewInt(left), new(big.Int), make([]big.Int, len(weights)), make([]int, len(weights))
	for i := range weights {
		rests[i].Mul(units, &weights[i])
		part.QuoRem(&rests[i], sum, &rests[i])
		parts[i], order[i] = part.Int64()*unit, i
		left -= part.Int64()
	}
	slices.SortStableFunc(order, func(i, j int) int { return rests[j].Cmp(&rests[i]) })
	for _, i := range order[:left] {
		parts[i] += unit
	}
	return parts, nil
}
