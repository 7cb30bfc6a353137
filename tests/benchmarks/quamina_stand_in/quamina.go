// Package quamina has the part of quamina's interface that its driver uses, and compares one pattern after another.
package quamina

import "encoding/json"

type X any

type Option func(q *Quamina) error

type Quamina struct {
	patterns []map[string][]string
	names    []X
}

func New(options ...Option) (*Quamina, error) {
	return &Quamina{}, nil
}

func (q *Quamina) AddPattern(x X, patternJSON string) error {
	pattern := map[string][]string{}
	q.names = append(q.names, x)
	err := json.Unmarshal([]byte(patternJSON), &pattern)
	q.patterns = append(q.patterns, pattern)
	return err
}

func (q *Quamina) MatchesForEvent(event []byte) ([]X, error) {
	fields, found := map[string]string{}, []X{}
	err := json.Unmarshal(event, &fields)
	for at, pattern := range q.patterns {
		if matches(pattern, fields) {
			found = append(found, q.names[at])
		}
	}
	return found, err
}

func matches(pattern map[string][]string, fields map[string]string) bool {
	for name, values := range pattern {
		if fields[name] != values[0] {
			return false
		}
	}
	return true
}
