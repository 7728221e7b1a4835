package jinja

import (
	"strings"
	"testing"
)

// Every operation of a template keeps which characters come from the user.
func TestUser(t *testing.T) {
	variables := map[string]any{
		"u": "Ab c", "wide": " ÀB<日本> ", "n": 12, "own": Trusted("<s>"), "tags": "x<|im_/thinkend|>",
		"m": Map{{"role", Trusted("user")}, {"content", "q\n"}}, "list": []any{"a", Trusted("b"), 3, true, nil},
		"invalid": "a\xff\xfeb", "none": nil, "empty": "",
	}
	for _, c := range []struct{ src, want string }{ // the user's characters are in ⟨⟩
		{"a{{ u }}b{{ own }}", "a⟨Ab c⟩b<s>"},
		{"{{ '<' + u ~ '>' ~ n ~ 5 ~ empty }}", "<⟨Ab c⟩>⟨12⟩5"},
		{"{{ '<|' + m.role + '|>' + m['content'] + '<|end|>' }}", "<|user|>⟨q\n⟩<|end|>"},
		{"{{ tags.replace('/think', '') }}|{{ tags | replace('im_', '-') }}", "⟨x<|im_end|>⟩|⟨x<|⟩-⟨/thinkend|>⟩"},
		{"{{ 'a-b' | replace('-', u) }} {{ u | replace('', '-') }} {{ 'ab'.replace('', u[0]) }}",
			"a⟨Ab c⟩b -⟨A⟩-⟨b⟩-⟨ ⟩-⟨c⟩- ⟨A⟩a⟨A⟩b⟨A⟩"},
		{"{{ ('<' + u + '> ') | trim }}{{ (' ' + u).strip() }}{{ u.lstrip('A') }}{{ u.rstrip('c ') }}",
			"<⟨Ab c⟩>⟨Ab cb cAb⟩"},
		{"{{ ('X' + u + 'Y') | lower }}{{ ('X' + wide) | lower }}{{ ('K' + 'K' + u) | lower }}",
			"x⟨ab c⟩yx⟨ àb<日本> ⟩kk⟨ab c⟩"},
		{"{{ ('x' + u + 'y') | upper }}{{ ('x' + u + 'y').capitalize() }}{{ u | capitalize }}",
			"X⟨AB C⟩YX⟨ab c⟩y⟨Ab c⟩"},
		{"{{ ('x ' + u + ' y').split() | join('+') }}|{{ ('x,' + u).split('b') | join('<') }}|{{ ('x' + u).split(' ', 1)[-1] }}",
			"x+⟨Ab⟩+⟨c⟩+y|x,⟨A⟩<⟨ c⟩|⟨c⟩"},
		{"{{ ('<' + wide + '>')[1:3] }}{{ ('<' + wide)[:2] }}{{ (wide + '>')[-3:] }}{{ ('<' + u)[::-1] }}",
			"⟨ À⟩<⟨ > ⟩>⟨c bA⟩<"},
		{"{{ ('<' + u)[0] }}{{ ('<' + u)[-1] }}{{ wide[4] }}{{ ('<' + u) | first }}{{ ('<' + u) | last }}",
			"<⟨c日⟩<⟨c⟩"},
		{"{% for c in '<' + u + '>' %}{{ c }}.{% endfor %}", "<.⟨A⟩.⟨b⟩.⟨ ⟩.⟨c⟩.>."},
		{"{{ ('<' + u) | list | join }} {{ ['<', u, own] | join(u) }}", "<⟨Ab c⟩ <⟨Ab cAb cAb c⟩<s>"},
		{"{{ u | tojson }} {{ own | tojson }} {{ {'a': 1} | tojson }} {{ [own, u] | tojson }} {{ n | tojson }}",
			"⟨\"Ab c\"⟩ \"<s>\" {\"a\": 1} ⟨[\"<s>\", \"Ab c\"]⟩ ⟨12⟩"},
		{"{{ m }} {{ [own] }} {{ {'a': n} }} {{ m.items() | list }}",
			"⟨{'role': 'user', 'content': 'q\\n'}⟩ ['<s>'] ⟨{'a': 12}⟩ ⟨[('role', 'user'), ('content', 'q\\n')]⟩"},
		{"{% for k in m %}{{ k }}.{% endfor %}{% for k, v in m.items() %}{{ v }}{% endfor %}{{ m.get('content') | trim }}",
			"⟨role⟩.⟨content⟩.user⟨q\nq⟩"},
		{"{% for x in list %}{{ x }},{% endfor %}", "⟨a⟩,b,⟨3⟩,True,None,"},
		{"{{ n + 1 }} {{ -n }} {{ n * 2 % 5 }} {{ '7' | int }} {{ (n | string) | int }} {{ u | length }} {{ list | length }} {{ range(n, n + 1) | first }} {{ range(1, 2) | first }}",
			"⟨13⟩ ⟨-12⟩ ⟨4⟩ 7 ⟨12⟩ ⟨4⟩ 5 ⟨12⟩ 1"},
		{"{% set x %}<{{ u }}>{% endset %}{{ x }}{{ x | trim('<') }}", "<⟨Ab c⟩>⟨Ab c⟩>"},
		{"{% macro f(a, b='<') %}{{ b }}{{ a }}>{% endmacro %}{{ f(u) }}{{ f('x', b=u) }}{{ f(u) | trim('<') }}",
			"<⟨Ab c⟩>⟨Ab c⟩x>⟨Ab c⟩>"},
		{"{% set ns = namespace(t='<') %}{% for i in [1, 2] %}{% set ns.t = ns.t + u %}{% endfor %}{{ ns.t }}>",
			"<⟨Ab cAb c⟩>"},
		{"{{ u if u.startswith('Ab') and 'b' in u and u == 'Ab c' and u != own else 'no' }}{{ {'Ab c': 'found'}[u] }}{{ {u: 'x'}['Ab c'] }}",
			"⟨Ab c⟩foundx"},
		{"{{ nothing | default(u) }}{{ u | default('x') }}{{ empty | default('x', true) }}{{ u or own }}{{ own and u }}",
			"⟨Ab cAb c⟩x⟨Ab cAb c⟩"},
		{"{{ [u, own] | map('lower') | join(',') }} {{ [m] | map(attribute='content') | first | trim }} {{ [m] | selectattr('role', 'eq', 'user') | map(attribute='role') | join }}",
			"⟨ab c⟩,<s> ⟨q⟩ user"},
		{"{{ {'b': u, 'a': own} | dictsort | map('last') | join }}", "<s>⟨Ab c⟩"},
		{"{{ strftime_now('%Y') }} {{ strftime_now('%Y' + u) }}", "2025 ⟨2025Ab c⟩"},
		{"{{ invalid }}{{ invalid | length }}", "⟨a\uFFFDb3⟩"},
		{"{{ u | string }}{{ n | string }}{{ 3 | string }}", "⟨Ab c12⟩3"},
		{"{% for c in wide %}{{ loop.index }}{{ loop.previtem }}{% if loop.last %}{{ loop.length }}{% endif %}{% endfor %}",
			"12⟨ ⟩3⟨À⟩4⟨B⟩5⟨<⟩6⟨日⟩7⟨本⟩8⟨>⟩8"},
	} {
		tpl, err := Parse(c.src)
		if err != nil {
			t.Errorf("%s: %v", c.src, err)
			continue
		}
		got, user, err := tpl.Render(variables, clock)
		var b strings.Builder
		done := 0
		for _, s := range user {
			b.WriteString(got[done:s.Start] + "⟨" + got[s.Start:s.End] + "⟩")
			done = s.End
		}
		b.WriteString(got[done:])
		if err != nil || b.String() != c.want {
			t.Errorf("%s: error %v\n%s, want\n%s", c.src, err, b.String(), c.want)
		}
	}
}
