package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
)

// plot is a drawing of lines over a common x, or of groups of bars.
type plot struct {
	name, title string
	x, y        string // the axes' words
	logX, logY  bool
	zeroY       bool // the y axis begins at 0
	lines       []line
	marks       []float64 // vertical lines
	groups      []string  // bars: the words under each group; lines hold a bar for each
}

// line is a series. Of bars only y is used.
type line struct {
	name string
	x, y []float64
}

// bars groups one bar for each target under each name.
func bars(name, title string, groups []string, all []*target, value func(t *target, group string) float64) *plot {
	p := &plot{name: name, title: title, groups: groups, zeroY: true}
	for _, t := range all {
		l := line{name: t.name}
		for _, g := range groups {
			l.y = append(l.y, value(t, g))
		}
		p.lines = append(p.lines, l)
	}
	return p
}

var colours = []string{"#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#777777"}

const (
	plotWidth, plotHeight = 640.0, 360.0
	marginLeft, marginTop = 64.0, 40.0
	marginRight           = 140.0
	marginBottom          = 48.0
)

// axis maps values to places.
type axis struct {
	low, high float64
	log       bool
	from, to  float64
}

func (a axis) at(v float64) float64 {
	low, high := a.low, a.high
	if a.log {
		low, high, v = math.Log10(low), math.Log10(high), math.Log10(max(v, 1e-9))
	}
	if high == low {
		return (a.from + a.to) / 2
	}
	return a.from + (v-low)/(high-low)*(a.to-a.from)
}

// ticks are round numbers on the axis.
func (a axis) ticks() (list []float64) {
	if a.log {
		for e := math.Floor(math.Log10(a.low)); e <= math.Ceil(math.Log10(a.high)); e++ {
			for _, m := range []float64{1, 2, 5} {
				if v := m * math.Pow(10, e); v >= a.low*0.999 && v <= a.high*1.001 && (m == 1 || a.high/a.low < 200) {
					list = append(list, v)
				}
			}
		}
		return list
	}
	step := math.Pow(10, math.Floor(math.Log10(a.high-a.low)))
	for (a.high-a.low)/step < 4 {
		step /= 2
	}
	for v := math.Ceil(a.low/step) * step; v <= a.high*1.0001; v += step {
		list = append(list, v)
	}
	return list
}

// bounds are the least and most of all values.
func bounds(all [][]float64, log bool) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, l := range all {
		for _, v := range l {
			if !log || v > 0 {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	if low > high {
		return 1, 2
	}
	if low == high {
		return low * 0.9, high*1.1 + 1e-9
	}
	return low, high
}

// svg draws.
func (p *plot) svg() []byte {
	var b bytes.Buffer
	text := func(x, y float64, anchor, s string) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, html.EscapeString(s))
	}
	rule := func(x1, y1, x2, y2 float64, colour string) {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", x1, y1, x2, y2, colour)
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="sans-serif" font-size="11">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/>`+"\n")
	text(marginLeft, 20, "start", p.title)
	var xs, ys [][]float64
	for _, l := range p.lines {
		xs, ys = append(xs, l.x), append(ys, l.y)
	}
	y := axis{log: p.logY, from: plotHeight - marginBottom, to: marginTop}
	if y.low, y.high = bounds(ys, p.logY); p.zeroY {
		y.low = min(0, y.low)
	}
	for _, v := range y.ticks() {
		rule(marginLeft, y.at(v), plotWidth-marginRight, y.at(v), "#dddddd")
		text(marginLeft-6, y.at(v)+4, "end", fmt.Sprintf("%.4g", v))
	}
	x := axis{log: p.logX, from: marginLeft, to: plotWidth - marginRight}
	if p.groups != nil {
		p.drawBars(&b, x, y, text)
	} else {
		x.low, x.high = bounds(xs, p.logX)
		for _, v := range x.ticks() {
			rule(x.at(v), y.from, x.at(v), y.from+4, "#888888")
			text(x.at(v), y.from+18, "middle", fmt.Sprintf("%.4g", v))
		}
		for _, v := range p.marks {
			rule(x.at(v), y.from, x.at(v), y.to, "#bb5566")
		}
		for i, l := range p.lines {
			fmt.Fprintf(&b, `<polyline fill="none" stroke-width="2" stroke="%s" points="`, colours[i%len(colours)])
			for j := range l.x {
				fmt.Fprintf(&b, "%.1f,%.1f ", x.at(l.x[j]), y.at(l.y[j]))
			}
			fmt.Fprintln(&b, `"/>`)
		}
	}
	rule(x.from, y.from, x.to, y.from, "#888888")
	text((x.from+x.to)/2, plotHeight-10, "middle", p.x)
	text(12, marginTop-6, "start", p.y)
	for i, l := range p.lines {
		at := marginTop + 18*float64(i)
		fmt.Fprintf(&b, `<rect x="%g" y="%g" width="10" height="10" fill="%s"/>`+"\n", plotWidth-marginRight+12, at, colours[i%len(colours)])
		text(plotWidth-marginRight+28, at+9, "start", l.name)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (p *plot) drawBars(b *bytes.Buffer, x, y axis, text func(x, y float64, anchor, s string)) {
	wide := (x.to - x.from) / float64(len(p.groups))
	each := wide * 0.8 / float64(max(len(p.lines), 1))
	for g, name := range p.groups {
		at := x.from + wide*(float64(g)+0.1)
		for i, l := range p.lines {
			top := y.at(l.y[g])
			fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", at+each*float64(i), top, each*0.9, max(y.from-top, 0), colours[i%len(colours)])
		}
		text(at+wide*0.4, y.from+18, "middle", name)
	}
}
