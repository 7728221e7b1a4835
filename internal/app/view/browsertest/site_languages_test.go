package browsertest

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Lessons in other languages show the same figures, without English in them.
func TestSiteLanguages(t *testing.T) {
	url := site(t)
	for _, language := range []string{"zh", "ja"} {
		w := watch(t, 390, 800)
		for _, name := range append([]string{"index"}, lessonNames...) {
			w.do(chromedp.Navigate("about:blank"), chromedp.Navigate(url+language+"/"+name+".html"))
			w.wait(`document.readyState === "complete"`)
			w.wait(`document.body.dataset.lesson === undefined || document.body.dataset.drawn !== undefined`)
			if got := js[string](w.tab, `document.documentElement.lang`); got != language {
				t.Errorf("%s is in %q", name, got)
			}
			// Words with a small letter after a space, or at the beginning, that are not code.
			english := js[[]string](w.tab, `(() => {
				const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
				while (walk.nextNode()) {
					const node = walk.currentNode;
					if (/\b(the|of|and|is|to|in|weights|heads|with|step)\b/.test(node.data) && !node.parentElement.closest("pre, code, math, script, noscript, textarea, #sentence, .text, h4, .numbers, [lang=en]")) found.push(node.data.trim());
				}
				return found;
			})()`)
			if len(english) > 0 {
				t.Errorf("%s/%s has English text: %q", language, name, english)
			}
			if wide := js[int](w.tab, "document.documentElement.scrollWidth"); wide > 390 {
				t.Errorf("%s/%s is %d pixels wide", language, name, wide)
			}
			if problem := w.text("#notes .bad"); problem != "" {
				t.Errorf("%s/%s says: %s", language, name, problem)
			}
		}
	}
}

// terms are those of the chapter about attention in the Chinese edition of Dive into Deep Learning, and the Japanese words
// for them.
var terms = map[string]string{
	"zh": `注意力机制 注意力提示 自主性提示 查询 键值对 注意力汇聚 核回归 非参数注意力汇聚 带参数注意力汇聚 注意力权重 注意力评分函数 掩蔽softmax 遮蔽
		有效长度 加性注意力 点积注意力 缩放点积注意力 暂退法 编码器 解码器 束搜索 循环神经网络 Bahdanau注意力 多头注意力 线性投影 自注意力 交叉注意力 位置编码
		绝对位置信息 相对位置信息 自回归 Transformer 词元 小批量 填充 词表 交叉熵损失 梯度裁剪 梯度下降 张量 广播 预训练`,
	"ja": `注意機構 注意の手がかり 随意的手がかり クエリ キー アテンションプーリング カーネル回帰 ノンパラメトリック パラメトリック アテンション重み アテンションスコア関数
		マスク付きソフトマックス 有効長 加法注意 内積注意 縮小付き内積注意 ドロップアウト エンコーダ デコーダ ビームサーチ リカレント型 Bahdanauアテンション マルチヘッド注意
		多頭注意 線形射影 自己注意 交差注意 位置符号化 位置エンコーディング 絶対位置 相対位置 自己回帰 Transformer トークン ミニバッチ パディング 語彙 交差エントロピー
		勾配クリッピング 勾配降下法 ブロードキャスト 学習済み`,
}

// A search for a word of the textbook finds it first in the language of the page, with spaces between Chinese or Japanese
// and other letters or without. A page in another language finds it, too.
func TestSiteTerms(t *testing.T) {
	url := site(t)
	w := watch(t, 1280, 800)
	for language, list := range terms {
		if n := len(strings.Fields(list)); n < 40 {
			t.Errorf("%d terms in %s, want at least 40", n, language)
		}
		w.do(chromedp.Navigate("about:blank"), chromedp.Navigate(url+language+"/search.html"))
		w.wait(`document.activeElement.id === "words"`)
		for _, term := range append(strings.Fields(list), "掩码 softmax", "softmax 和") {
			if language == "ja" && strings.Contains(term, "softmax") {
				continue
			}
			w.do(chromedp.Navigate(url + language + "/search.html#q=" + term))
			w.wait(`document.getElementById("words").value === "` + term + `"`)
			got := js[[]string](w.tab, `(() => {
				const a = document.querySelector("#found a");
				return a ? [a.getAttribute("href"), a.parentElement.textContent] : ["nothing", ""];
			})()`)
			if !strings.HasPrefix(got[0], "../"+language+"/") && !strings.HasPrefix(got[0], "../docs/glossary."+language) {
				t.Errorf("%s finds %s first", term, got[0])
			}
			for _, word := range strings.Fields(term) {
				if spaced := strings.ReplaceAll(got[1], " ", ""); !strings.Contains(strings.ToLower(spaced), strings.ToLower(word)) {
					t.Errorf("%s finds %q first", term, got[1])
				}
			}
		}
	}
	w.do(chromedp.Navigate("about:blank"), chromedp.Navigate(url+"search.html#q=掩蔽+softmax操作"))
	w.wait(`document.querySelector("#found a")?.getAttribute("href").includes("zh/scores.html")`)
	w.click("#found a")
	w.wait(`location.pathname === "/zh/scores.html"`)
}

// A lesson opens in the browser's language, until the reader chooses another. The state of its figures stays.
func TestSiteChosenLanguage(t *testing.T) {
	url := site(t)
	w := watch(t, 1280, 800)
	if _, err := chromedp.Call(w.ctx, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: "Chromium", AcceptLanguage: "zh-CN"}); err != nil {
		t.Fatal(err)
	}
	w.do(chromedp.Navigate(url + "scores.html#e=256"))
	w.wait(`location.pathname === "/zh/scores.html" && location.hash === "#e=256"`)
	w.wait(`document.body?.dataset.drawn !== undefined`)
	w.click(`.languages [lang="en"]`)
	w.wait(`location.pathname === "/scores.html" && location.hash.includes("e=256") && document.body?.dataset.drawn !== undefined`)
	w.do(chromedp.Navigate("about:blank"), chromedp.Navigate(url+"masks.html"))
	w.wait(`document.body?.dataset.drawn !== undefined`)
	if got := js[string](w.tab, `location.pathname`); got != "/masks.html" {
		t.Errorf("after English was chosen, %s opens", got)
	}
}

// Code is shown in Go or in PyTorch, with its output, in all lessons as it was chosen; what is copied runs alone.
func TestSiteCode(t *testing.T) {
	w := watch(t, 1280, 900)
	url := site(t) // its storage has what was chosen
	w.lesson(url + "shapes.html")
	seen := func(selector string) bool {
		return js[bool](w.tab, `document.querySelector("`+selector+`").checkVisibility()`)
	}
	if !seen(".code .go pre") || seen(".code .torch pre") {
		t.Error("Go is not shown first")
	}
	w.click(`.code [data-code="torch"]`)
	if seen(".code .go pre") || !seen(".code .torch pre") {
		t.Error("PyTorch is not shown")
	}
	if got := w.text(".code .torch pre:last-of-type"); !strings.Contains(got, "0.3333, 0.3333, 0.3333, 0.0000, 0.0000, 0.0000") {
		t.Errorf("its output is %q", got)
	}
	js[bool](w.tab, `(window.copied = "", navigator.clipboard.writeText = async (text) => { window.copied = text; }, true)`)
	w.click(`.code [data-copied]`)
	w.wait(`window.copied.startsWith("# pip install torch\n") && window.copied.includes("\nimport math\n") && window.copied.includes("nn.MultiheadAttention(100, 5") && document.querySelector(".code [data-copied]").textContent === "Copied"`)
	w.wait(`document.querySelector(".code [data-copied]").textContent === "Copy"`)
	w.click(`.code [data-whole]`)
	w.wait(`window.copied.includes("Lesson 4 of docs/lessons.md")`)
	w.lesson(url + "dates.html")
	if seen(".code .go pre") || !seen(".code .torch pre") {
		t.Error("the next lesson does not show PyTorch")
	}
	if n := js[int](w.tab, `document.querySelectorAll(".code").length`); n != 3 {
		t.Errorf("%d pieces of code have two languages, want 3", n)
	}
}

// A reader in Chinese or Japanese stays there: after documents and a search, in the frame of lesson 7, and in errors.
func TestSiteStays(t *testing.T) {
	url := site(t)
	for language, c := range map[string]struct{ empty, divisible, method string }{
		"zh": {"文本是空的。", "宽度 100 不能被头的个数 3 整除。", "留一法"},
		"ja": {"テキストが空です。", "幅 100 は、ヘッドの数 3 で割り切れません。", "leave-one-out（一つ抜き）"},
	} {
		w := watch(t, 1280, 800)
		w.lesson(url + language + "/shapes.html#h=3&d=100")
		w.wait(`document.getElementById("refused").textContent === "` + c.divisible + `"`)
		w.lesson(url + language + "/dates.html#text=")
		w.wait(`document.getElementById("text-problem").textContent === "` + c.empty + `"`)
		if got := w.text("#method option"); got != c.method {
			t.Errorf("the first method is called %q", got)
		}
		for _, way := range [][2]string{
			{`nav a[href$="docs/index.html"]`, "/docs/"}, {`article a[href$="glossary.html"]`, "/docs/glossary." + language + ".html"},
			{`nav a[href$="search.html"]`, "/" + language + "/search.html"}, {".brand", "/" + language + "/"},
			{`nav a[href$="docs/index.html"]`, "/docs/"}, {".brand", "/" + language + "/"},
			{`.languages [lang="en"]`, "/"}, {`nav a[href$="search.html"]`, "/search.html"},
		} {
			w.click(way[0])
			w.wait(`location.pathname === "` + way[1] + `" && document.readyState === "complete"`)
		}
		w.lesson(url + language + "/minilm.html#find=it")
		// The frame is a sandbox, which a test cannot read: a second one without it has the same page and texts.
		w.wait(`document.getElementById("heads").src.includes("minilm-heads")`)
		js[bool](w.tab, `(() => {
			const frame = document.getElementById("heads").cloneNode();
			frame.removeAttribute("sandbox");
			frame.id = "copy";
			document.body.append(frame);
			return true;
		})()`)
		w.wait(`document.getElementById("copy").contentDocument?.body?.dataset.drawn !== undefined`)
		for _, view := range []string{"map", "lines", "text", "neurons"} {
			js[bool](w.tab, `(document.getElementById("copy").contentDocument.querySelector("[data-view=`+view+`]").click(), true)`)
			w.wait(`document.getElementById("copy").contentDocument.body.dataset.drawn !== undefined`)
			english := js[[]string](w.tab, `(() => {
				const body = document.getElementById("copy").contentDocument.body, names = [...body.querySelectorAll("[aria-label]")].filter((e) => e.checkVisibility()).map((e) => e.getAttribute("aria-label"));
				return [body.innerText, ...names].join("\n").replaceAll("The animal didn't cross the street because it was too tired.", "").match(/\b(head|layer|query|key|weights?|of|with|to|and|map|lines|text)\b.*/gi) ?? [];
			})()`)
			if len(english) > 0 {
				t.Errorf("the view %s in %s has English text: %q", view, language, english)
			}
		}
	}
}
