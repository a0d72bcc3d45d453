package money

import (
	"cmp"
	"errors"
	"math/big"
	"math/bits"
	"slices"
)

// ErrWeights reports weights by which an amount cannot be allocated: one is negative, or all of them are 0.
var ErrWeights = errors.New("no weights to allocate by")

// Allocate splits the amount in proportion to the weights by the largest remainder, so that the parts add up to it: each part is
// rounded down, and what is left goes to the parts that lost most, one minor unit each. Of equal ones, the earlier comes first. A part
// is 0 if its weight is. If the amount is at most the sum of the weights, no part exceeds its weight. An amount of 0 needs no weights. Allocate returns
// ErrWeights for a weight below 0, or if every weight is 0 and the amount is not, and ErrOverflow if the weights exceed 64 bits together.
func (a Amount) Allocate(weights []int64) ([]Amount, error) {
	parts, err := a.allocate(weights)
	if err != nil {
		return nil, err
	}
	out := make([]Amount, len(parts))
	for i, part := range parts {
		out[i] = Amount{Minor: part, Currency: a.Currency}
	}
	return out, nil
}

// allocate is Allocate in minor units.
func (a Amount) allocate(weights []int64) ([]int64, error) {
	var sum, over uint64
	for _, w := range weights {
		if w < 0 {
			return nil, ErrWeights
		}
		if sum, over = bits.Add64(sum, uint64(w), 0); over != 0 {
			return nil, ErrOverflow
		}
	}
	parts := make([]int64, len(weights))
	if a.Minor == 0 {
		return parts, nil
	}
	if sum == 0 {
		return nil, ErrWeights
	}
	units, sign := a.size()
	rests := make([]uint64, len(weights))
	for i, w := range weights {
		high, low := bits.Mul64(uint64(units), uint64(w))
		part, rest := bits.Div64(high, low, sum) // high < sum, because no weight exceeds the sum
		parts[i], rests[i] = int64(part), rest
	}
	fill(parts, units, sign, func(i, j int) int { return cmp.Compare(rests[i], rests[j]) })
	return parts, nil
}

// allocateBig is allocate with weights of any size, none of them negative and not all of them 0.
func (a Amount) allocateBig(weights []big.Int) []int64 {
	units, sign := a.size()
	parts, rests := make([]int64, len(weights)), make([]big.Int, len(weights))
	sum, all, part := new(big.Int), big.NewInt(units), new(big.Int)
	for i := range weights {
		sum.Add(sum, &weights[i])
	}
	for i := range weights {
		part.QuoRem(rests[i].Mul(all, &weights[i]), sum, &rests[i])
		parts[i] = part.Int64()
	}
	fill(parts, units, sign, func(i, j int) int { return rests[i].Cmp(&rests[j]) })
	return parts
}

// size returns the amount without its sign, and 1 with its sign.
func (a Amount) size() (units, sign int64) {
	if a.Minor < 0 {
		return -a.Minor, -1
	}
	return a.Minor, 1
}

// fill adds what the parts lack of all units to those with the largest rests, and multiplies the parts by the sign.
func fill(parts []int64, units, sign int64, compare func(i, j int) int) {
	order := make([]int, len(parts))
	for i, part := range parts {
		order[i] = i
		units -= part
	}
	slices.SortStableFunc(order, func(i, j int) int { return compare(j, i) })
	for _, i := range order[:units] {
		parts[i]++
	}
	for i := range parts {
		parts[i] *= sign
	}
}
