"""attn_implementation="heed" against eager, for small models with random weights."""

import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

import heed.torch as ht  # noqa: E402
import heed.transformers  # noqa: E402

warnings.filterwarnings("ignore")
transformers.logging.set_verbosity_error()
heed.transformers.register()

SIZES = {
    "vocab_size": 120, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "max_position_embeddings": 256,
}  # fmt: skip
TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None}
GEMMA = {"sliding_window": 24, "query_pre_attn_scalar": 16}
FAMILIES = {
    "gpt2": ("GPT2Config", {"vocab_size": 120, "n_embd": 64, "n_layer": 3, "n_head": 4}),
    "llama": ("LlamaConfig", SIZES),
    "qwen2": ("Qwen2Config", SIZES),
    "qwen3": ("Qwen3Config", SIZES),
    "gemma2": ("Gemma2Config", {**SIZES, **GEMMA, "attn_logit_softcapping": 5.0}),
    "gemma3": ("Gemma3TextConfig", {**SIZES, **GEMMA}),
    "gpt_oss": (
        "GptOssConfig",
        {**SIZES, "sliding_window": 24, "num_local_experts": 4, "num_experts_per_tok": 2},
    ),
}


@pytest.fixture(params=FAMILIES)
def family(request):
    return request.param


@pytest.fixture
def model(family):
    name, sizes = FAMILIES[family]
    torch.manual_seed(5)
    config = getattr(transformers, name)(**sizes, **TOKENS)
    made = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    for name, parameter in made.named_parameters():
        if "sinks" in name:
            torch.nn.init.normal_(parameter)
    ht.reset_counts()
    with torch.no_grad():
        yield made


def tokens(*shape):
    return torch.randint(2, 120, shape, generator=torch.Generator().manual_seed(9))


def with_heed(model):
    model.set_attn_implementation("heed")
    return model


def test_logits_and_maps_are_eagers(model):
    x = tokens(2, 50)
    want = model(x, output_attentions=True)
    got = with_heed(model)(x, output_attentions=True)
    assert ht.counts() == {"heed": 3}
    assert (got.logits - want.logits).abs().max() <= 1e-4
    assert len(got.attentions) == 3
    for a, b in zip(got.attentions, want.attentions):
        assert a.shape == b.shape and (a - b).abs().max() <= 2e-6
        assert (a.triu(1) == 0).all()
    assert not model(x).attentions
    torch.testing.assert_close(model(x).logits, got.logits, atol=0, rtol=0)


@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_greedy_tokens_are_eagers(model, cache):
    options = {
        "max_new_tokens": 64, "do_sample": False, "cache_implementation": cache,
        "disable_compile": True,
    }  # fmt: skip
    x = tokens(2, 20)
    x[1, :6] = 0  # padded on the left
    seen = (x != 0).long()
    want = model.generate(x, attention_mask=seen, **options)
    got = with_heed(model).generate(x, attention_mask=seen, **options)
    assert torch.equal(got, want)
    alone = model.generate(x[:1], **options)
    assert torch.equal(alone[0], want[0])
    assert set(ht.counts()) == {"heed"}


def test_a_later_token_changes_no_earlier_state(model, family):
    if family == "gpt_oss":
        pytest.skip("its experts' matrix products depend on how all tokens are routed")
    x = tokens(1, 50)
    y = x.clone()
    y[0, 40] = (y[0, 40] - 1) % 118 + 2
    with_heed(model)
    states = [model(z, output_hidden_states=True).hidden_states for z in (x, y)]
    for a, b in zip(*states):
        assert torch.equal(a[:, :40], b[:, :40])
    assert not torch.equal(states[0][-1][:, 40:], states[1][-1][:, 40:])
    # Not even one that is no number.
    model.get_input_embeddings().weight[119] = torch.nan
    x[x == 119] = 3
    y = x.clone()
    y[0, 40] = 119
    states = [model(z, output_hidden_states=True).hidden_states for z in (x, y)]
    for a, b in zip(*states):
        assert torch.equal(a[:, :40], b[:, :40])
    if family == "llama":
        model.set_attn_implementation("sdpa")
        poisoned = model(y, output_hidden_states=True).hidden_states[-1][:, :40]
        print("with sdpa a NaN in token 40 reaches", int(poisoned.isnan().any(-1).sum()), "of 40")


def test_chunks_of_a_prompt_give_the_whole(model):
    x = tokens(1, 60)
    with_heed(model)
    want = model(x).logits
    cache = transformers.DynamicCache(config=model.config)
    parts = [model(x[:, i : i + 20], past_key_values=cache).logits for i in (0, 20, 40)]
    torch.testing.assert_close(torch.cat(parts, 1), want, atol=1e-5, rtol=1e-5)


def test_gradients_are_eagers(model):
    x = tokens(1, 30)
    weight = next(p for n, p in model.named_parameters() if "q_proj" in n or "c_attn" in n)
    gradients = []
    with torch.enable_grad():
        for name in ("eager", "heed"):
            model.set_attn_implementation(name)
            model.zero_grad()
            model(x, labels=x).loss.backward()
            gradients.append(weight.grad.clone())
    torch.testing.assert_close(*gradients, atol=1e-5, rtol=1e-4)
    assert ht.counts() == {"autograd": 3}


def test_compile_keeps_one_graph(model, family):
    if family not in ("llama", "gemma2"):
        pytest.skip("two families are enough")
    x = tokens(1, 30)
    want = with_heed(model)(x, use_cache=False).logits
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, use_cache=False).logits, want, atol=1e-5, rtol=1e-5)


def test_half_precision(model, family):
    if family not in ("llama", "gpt_oss"):
        pytest.skip("two families are enough")
    model = model.to(torch.bfloat16)
    x = tokens(1, 30)
    want = model(x).logits
    torch.testing.assert_close(with_heed(model)(x).logits, want, atol=5e-2, rtol=5e-2)
    assert ht.counts() == {"heed": 3}
