package models

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"

	"github.com/attn-go/attn/internal/quote"
)

// routeFile lists the modules of a Router, by route.
const routeFile = "router_config.json"

// readRouter reads the settings of a Router, nil with an error if there are none.
func readRouter(dir string, m module) (*Settings, error) {
	if err := m.checkPath(0); err != nil {
		return nil, &FormatError{filepath.Join(dir, PipelineFile), err}
	}
	s, err := openSettings(filepath.Join(dir, m.Path, routeFile))
	if errors.Is(err, fs.ErrNotExist) { // its name in versions before 5
		s, err = openSettings(filepath.Join(dir, m.Path, configFile))
	}
	return s, err
}

// types returns the classes of the modules of a Router, by their folders.
func (s *Settings) types() map[string]string {
	return get[map[string]string](s, "types", "an object of classes by module", nil)
}

// followRoute returns the modules of a pipeline with those of a route in place of a Router, if that is the first module.
// An empty name is the default route. routes are the names of all routes, beginning with that one.
//
// Source: Router of sentence-transformers.
func followRoute(dir string, modules []module, name string) (list []module, routes []string, err error) {
	if len(modules) == 0 || modules[0].kind() != "Router" {
		if name != "" && (len(modules) == 0 || modules[0].Type != customTransformer) {
			return nil, nil, &FormatError{dir, fmt.Errorf("has no Router, want no route; got %s", quote.Text(name))}
		}
		return modules, nil, nil
	}
	s, err := readRouter(dir, modules[0])
	if err != nil {
		return nil, nil, err
	}
	types := s.types()
	all := get[map[string][]string](s, "structure", "an object of lists of modules by route", nil)
	if p := s.Part("parameters"); p != nil {
		name = cmp.Or(name, p.Text("default_route", ""))
		p.Ignore("allow_empty_key", "default_route")
		p.Only("route_mappings", map[string]any{})
	}
	route, ok := all[name]
	if !ok {
		s.Fail("structure", "has no route %s, want one of %s", quote.Text(name), quote.Texts(slices.Sorted(maps.Keys(all))))
	}
	list = make([]module, len(route))
	for i, id := range route {
		list[i] = module{Path: path.Join(modules[0].Path, id), Type: types[id]}
	}
	delete(all, name)
	return append(list, modules[1:]...), append([]string{name}, slices.Sorted(maps.Keys(all))...), s.check()
}
