package switches

import (
	"slices"
	"strings"
	"time"

	"github.com/interlock-gateway/interlock/gateway/storage"
)

// Set is the switches that are set at one moment, expired ones included. It is immutable; a
// nil Set is an empty one.
type Set struct {
	list    []storage.Switch // by kind and name
	byName  map[name]*storage.Switch
	actions []*storage.Switch
	aliases map[string][]*storage.Switch // the alias-action switches of an alias
}

type name struct{ kind, name string }

func newSet(list []storage.Switch) *Set {
	s := &Set{list: slices.Clone(list), byName: map[name]*storage.Switch{}, aliases: map[string][]*storage.Switch{}}
	slices.SortFunc(s.list, func(a, b storage.Switch) int {
		if c := strings.Compare(a.Kind, b.Kind); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	for i := range s.list {
		sw := &s.list[i]
		s.byName[name{sw.Kind, sw.Name}] = sw
		switch sw.Kind {
		case Action:
			s.actions = append(s.actions, sw)
		case AliasAction:
			if alias, _, ok := splitAliasAction(sw.Name); ok {
				s.aliases[alias] = append(s.aliases[alias], sw)
			}
		}
	}
	return s
}

// Empty reports whether no switch is set. It is the whole cost of switches while none is.
func (s *Set) Empty() bool { return s == nil || len(s.list) == 0 }

// List returns the switches in force, by kind and name.
func (s *Set) List(now time.Time) []storage.Switch {
	var list []storage.Switch
	if s == nil {
		return nil
	}
	for i := range s.list {
		if Active(&s.list[i], now) {
			list = append(list, s.list[i])
		}
	}
	return list
}

// Find returns the switch of that name, expired or not; nil if there is none. The switch is
// not to be changed.
func (s *Set) Find(kind, of string) *storage.Switch {
	if s.Empty() {
		return nil
	}
	return s.byName[name{kind, of}]
}

// Off returns the switch in force on something; nil if there is none.
func (s *Set) Off(kind, of string, now time.Time) *storage.Switch {
	if sw := s.Find(kind, of); sw != nil && Active(sw, now) {
		return sw
	}
	return nil
}

// Acts returns the acts that are switched off now, for all requests and for those of an alias
// ("" = none).
func (s *Set) Acts(alias string, now time.Time) Acts {
	if s.Empty() {
		return 0
	}
	var off Acts
	for _, sw := range s.actions {
		if a, ok := act(sw.Name); ok && Active(sw, now) {
			off |= a
		}
	}
	if alias == "" || len(s.aliases) == 0 {
		return off
	}
	for _, sw := range s.aliases[alias] {
		_, word, _ := splitAliasAction(sw.Name)
		if a, ok := act(word); ok && Active(sw, now) {
			off |= a
		}
	}
	return off
}

// with returns the switches with sw in them, in place of one of the same name.
func (s *Set) with(sw storage.Switch) []storage.Switch {
	return append(s.without(sw.Kind, sw.Name), sw)
}

func (s *Set) without(kind, of string) []storage.Switch {
	return slices.DeleteFunc(slices.Clone(s.list), func(o storage.Switch) bool { return o.Kind == kind && o.Name == of })
}
