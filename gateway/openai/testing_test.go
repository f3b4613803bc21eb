package openai

import "slices"

func sorted(n []int) []int {
	slices.Sort(n)
	return n
}
