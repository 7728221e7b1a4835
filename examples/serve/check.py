"""Calls the service with the Python package openai, as its users do: python check.py ADDRESS FILE.

FILE is JSON with texts, their token ids and their vectors.
"""

import asyncio
import json
import sys

import openai

address, path = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    case = json.load(file)
client = openai.OpenAI(base_url=address + "/v1", api_key="none", max_retries=0)
[name] = [model.id for model in client.models.list()]
assert client.models.retrieve(name).id == name


def near(answer, width=None):
    tokens = sum(len(ids) for ids in case["tokens"])
    assert (answer.model, answer.usage.prompt_tokens, answer.usage.total_tokens) == (name, tokens, tokens), answer
    assert [entry.index for entry in answer.data] == list(range(len(case["texts"])))
    for entry, want in zip(answer.data, case["vectors"]):
        want = want[:width]
        norm = sum(x * x for x in want) ** 0.5
        assert len(entry.embedding) == len(want)
        assert all(abs(x - y / norm) < 1e-6 for x, y in zip(entry.embedding, want)), (entry, want)


near(client.embeddings.create(model=name, input=case["texts"]))  # the package asks for base64
near(client.embeddings.create(model=name, input=case["texts"], encoding_format="float", user="somebody"))
near(client.embeddings.create(model=name, input=case["tokens"]))
near(client.embeddings.create(model=name, input=case["texts"], dimensions=case["width"]), case["width"])
assert client.embeddings.create(model=name, input=case["texts"][0]).data[0].index == 0
assert client.embeddings.create(model=name, input=case["tokens"][0]).data[0].index == 0


async def at_once():
    many = openai.AsyncOpenAI(base_url=address + "/v1", api_key="none")
    calls = (many.embeddings.create(model=name, input=case["texts"]) for _ in range(20))
    for answer in await asyncio.gather(*calls):
        near(answer)


asyncio.run(at_once())

for kind, key, arguments in [
    (openai.NotFoundError, "model", {"model": "text-embedding-3-small", "input": "a"}),
    (openai.BadRequestError, "input", {"model": name, "input": []}),
    (openai.BadRequestError, "dimensions", {"model": name, "input": "a", "dimensions": 1}),
    (openai.BadRequestError, "unknown", {"model": name, "input": "a", "extra_body": {"unknown": 1}}),
    (openai.APIStatusError, None, {"model": name, "input": "a " * 100}),
]:
    try:
        client.embeddings.create(**arguments)
        raise SystemExit(f"no error for {arguments}")
    except kind as error:
        assert error.param == key and error.type == "invalid_request_error", error
print("openai", openai.__version__, "understands the service")
