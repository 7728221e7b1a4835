// Package browsertest opens the page of package view in a browser and uses it.
// It is a module of its own, so that what drives the browser is a dependency of
// nobody else.
package browsertest
