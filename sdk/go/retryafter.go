package interlock

// RetryAfter reads when the provider may be asked again from the headers retry-after-ms and
// retry-after, as a duration in milliseconds from now (milliseconds since 1970, as Call.Now has
// it). A date is taken relative to the answer's own where it gives one. ok is false when nothing
// usable is said.
func (a *Answer) RetryAfter(now uint64) (ms uint64, ok bool) {
	if ms, ok = decimal(a.Get("retry-after-ms"), 0); ok {
		return ms, true
	}
	after := a.Get("retry-after")
	if ms, ok = decimal(after, 3); ok {
		return ms, true
	}
	at, ok := httpDate(after)
	if !ok {
		return 0, false
	}
	if date, ok := httpDate(a.Get("date")); ok {
		now = date
	}
	if at < now {
		return 0, true
	}
	return at - now, true
}

// decimal reads digits and, after a point, more of them, as a number with places decimal places
// moved in front of the point; what is behind those is dropped.
func decimal(s string, places int) (n uint64, ok bool) {
	const most = 1 << 50
	point := -1
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '.' && point < 0 && i > 0:
			point = i
		case c-'0' > 9:
			return 0, false
		case point < 0 || i-point <= places:
			if n = n*10 + uint64(c-'0'); n > most {
				return 0, false
			}
		}
	}
	if len(s) == 0 || point == len(s)-1 {
		return 0, false
	}
	have := 0
	if point >= 0 {
		have = min(len(s)-1-point, places)
	}
	for ; have < places; have++ {
		n *= 10
	}
	return n, true
}

// httpDate reads "Sun, 06 Nov 1994 08:49:37 GMT" as milliseconds since 1970.
func httpDate(s string) (ms uint64, ok bool) {
	const months = "JanFebMarAprMayJunJulAugSepOctNovDec"
	if len(s) != len("Sun, 06 Nov 1994 08:49:37 GMT") || s[3:5] != ", " || s[25:] != " GMT" ||
		s[7] != ' ' || s[11] != ' ' || s[16] != ' ' || s[19] != ':' || s[22] != ':' {
		return 0, false
	}
	month := uint64(0)
	for i := 0; i < len(months); i += 3 {
		if s[8:11] == months[i:i+3] {
			month = uint64(i/3 + 1)
		}
	}
	day, a := number(s[5:7])
	year, b := number(s[12:16])
	hour, c := number(s[17:19])
	minute, d := number(s[20:22])
	second, e := number(s[23:25])
	if !a || !b || !c || !d || !e || month == 0 || day == 0 || day > 31 || year < 1970 ||
		hour > 23 || minute > 59 || second > 60 {
		return 0, false
	}
	// Days since 1970 of the proleptic Gregorian calendar, with years that begin in March.
	if month <= 2 {
		year--
		month += 12
	}
	days := 365*year + year/4 - year/100 + year/400 + (153*(month-3)+2)/5 + day - 1 - 719468
	return (((days*24+hour)*60+minute)*60 + second) * 1000, true
}

func number(s string) (n uint64, ok bool) {
	for i := 0; i < len(s); i++ {
		if s[i]-'0' > 9 {
			return 0, false
		}
		n = n*10 + uint64(s[i]-'0')
	}
	return n, true
}
