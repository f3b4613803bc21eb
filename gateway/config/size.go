package config

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"time"
)

// Size is a number of bytes, written like 64KiB.
type Size int64

// The patterns are ECMA-262's and Go's at once: the JSON Schema has them too.
const (
	sizePattern     = `^(0|[0-9]{1,9}(\.[0-9]{1,6})?(B|KiB|MiB|GiB|TiB|KB|MB|GB|TB))$`
	percentPattern  = `^[0-9]{1,3}(\.[0-9]{1,6})?%$`
	durationPattern = `^(0|([0-9]{1,9}(\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h))+)$`
)

var (
	sizeForm     = regexp.MustCompile(sizePattern)
	percentForm  = regexp.MustCompile(percentPattern)
	durationForm = regexp.MustCompile(durationPattern)

	errSize     = errors.New("a size with its unit is expected, such as 64KiB, 32MiB or 20GiB")
	errDuration = errors.New("a duration with its unit is expected, such as 250ms, 15s, 2m or 720h")
)

var units = map[string]float64{
	"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
}

func parseSize(text string) (Size, error) {
	m := sizeForm.FindStringSubmatch(text)
	if m == nil {
		return 0, errSize
	}
	if text == "0" {
		return 0, nil
	}
	unit := m[3]
	n, err := strconv.ParseFloat(text[:len(text)-len(unit)], 64)
	if err != nil || n*units[unit] >= math.MaxInt64 {
		return 0, errSize
	}
	return Size(n * units[unit]), nil
}

func (s *Size) parse(text string) (err error) {
	*s, err = parseSize(text)
	return err
}

// String writes the size as in the file, in its largest whole unit.
func (s Size) String() string {
	for _, u := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if n := Size(units[u]); s >= n && s%n == 0 {
			return strconv.FormatInt(int64(s/n), 10) + u
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

func parseDuration(text string) (time.Duration, error) {
	if !durationForm.MatchString(text) {
		return 0, errDuration
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, errDuration
	}
	return d, nil
}

// parsePercent reads "20%" as 20.
func parsePercent(text string) (float64, bool) {
	if !percentForm.MatchString(text) {
		return 0, false
	}
	p, err := strconv.ParseFloat(text[:len(text)-1], 64)
	return p, err == nil && p <= 100
}
