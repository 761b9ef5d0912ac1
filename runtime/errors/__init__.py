"""Every error of the runtime, by the area that raises it.

True only here: the one flat list of the error classes, for whoever catches or tests.
Two areas say `TooManyArguments`: the name is that of a call's, and a definition's is
`TooManySchemaArguments` here.

Rules: names are packed, as nobody reads them one by one; a class is listed here or a
test says so; what is asked for is loaded, and nothing before: most programs raise few
errors, and all of these take half as long as the dispatcher to import.
"""

# fmt: off
# ruff: noqa: I001  # packed, as is said above

from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runtime.errors.archive import (
        ArchiveError, ArchiveTooLarge, DamagedArchive, NewerArchive, NotAnArchive,
        NotSaveable, OperatorNotHere,
    )
    from runtime.errors.arithmetic import DivisionByZero, NegativeExponent
    from runtime.errors.autograd import (
        AutocastRefused, AutogradError, DifferentiatedOnce, FunctionMisuse,
        GradcheckFailed, GradcheckMisuse, GradientMismatch, GradientNeeded, GraphFreed,
        HookMisuse, InferenceTensorUsed, InputWithoutGradient, LeafModified,
        NoGradientToCompute, NotAGradient, NotDetachable, NotImplementedFormula,
        OutRequiresGrad, OverlappingWrite, SavedTensorModified, UnknownMode,
        UnrecordedWrite, UnusedInput, ViewModified,
    )
    from runtime.errors.base import EveryorderError
    from runtime.errors.call import (
        AmbiguousKernel, CallError, CallWithoutSchema, DuplicateArgument,
        FallthroughCalled, KernelError, MissingArgument, MissingKernel,
        NamedNotSupported, NoMatchingOverload, NoSuchOverload, OperatorChanged,
        OperatorGone, OverloadGone, PrivateDispatcher, StackMismatch, TooManyArguments,
        UnknownArgument, WrongArgumentType, WrongReturnCount, WrongReturnType,
        WrongValue,
    )
    from runtime.errors.context import (
        ContextClosed, ContextError, ContextNotEntered, MainStaysOpen, MixedContexts,
        NoCopy, NotVerified, SchemaDiffers, WrappedElsewhere,
    )
    from runtime.errors.cuda import MaskedArray, OutOfMemory, WrongDevice
    from runtime.errors.custom_op import (
        AliasedResult, BadMutatesArgs, BrokenPromise, CustomOperatorError,
        DefinitionRefused, FakeNotNeeded, GradientStructure, KeywordOnlyTensor,
        LibraryNeeded, MalformedSignature, MissingFake, MutationMismatch,
        NoDeviceArgument, NoSuchKernel, NotAnOperator, NotFunctional, NotMutable,
        NotQualified, OtherResult, OverloadNeeded, SizeNotKnown, TagRefused,
        UnfitKernel, UnknownMutated,
    )
    from runtime.errors.future import (
        AlreadySettled, AwaitedAttribute, CallbackFailed, FutureCancelled, FutureError,
        FutureMisuse, FutureTimeout, NotSettled, Unmovable, WithoutFunction,
    )
    from runtime.errors.graph import BrokenGraph, GraphError
    from runtime.errors.key import (
        ForeignBits, GuardLeftElsewhere, GuardNotEntered, NoPriority, NotRegistrable,
        UnknownBackend, UnknownDevice, UnknownKey,
    )
    from runtime.errors.mode import ModeMisuse
    from runtime.errors.mode_stack import (
        EmptyModeStack, ModeNotEntered, ModeNotInnermost, ModeSlotTaken,
        ModeStackChanged, ModeStackError, NoModeAtPlace, NoModeSlot, PutAsideElsewhere,
    )
    from runtime.errors.module import (
        ModuleError, ModuleNotInitialized, NoForward, NoSuchMember, NotScriptable,
        StateMismatch, UnfitIndex, UnfitMember,
    )
    from runtime.errors.opcheck import (
        AliasNotSeen, AutogradAtBackend, AutogradMissing, BackwardRaised, FakeDiffers,
        FakeHasElements, FakeMissing, FakeRaised, FakeReadsElements, FunctionalDiffers,
        GradientWrong, OpCheckError, OpCheckMisuse, ResultsAlias, UndeclaredAlias,
        UndeclaredWrite,
    )
    from runtime.errors.operands import (
        DTypeRefused, DevicesDiffer, DimensionOutOfRange, NoDataToRead, NothingToReduce,
        OperandError, PartOutOfRange, ShapesRefused, TargetDType, TargetOverlaps,
        TargetShape, WrongOption,
    )
    from runtime.errors.operator import (
        IndexOutOfRange, IndexRefused, ShapesDoNotFit, ViewImpossible,
    )
    from runtime.errors.python_dispatch import (
        AlreadyWrapped, ClassHandler, EndlessDispatch, HandlerError, HandlerNotCallable,
        ModeWithoutHandler, NoElements, NoHandler, NoImplementation, NotATensorClass,
        NotForSubclasses, NotMade, NothingToHandle, OutsideOfHandler, PlainHandler,
        PythonDispatchError, RuleTaken, SubclassError, UndefinedResult, UnknownPolicy,
        WrongDetach, WrongHandlerResult, WrongMetadata, WrongSuperCall,
    )
    from runtime.errors.registration import (
        AliasKindConflict, CallRefused, CannotInfer, Conflict, DuplicateDefinition,
        DuplicateFallback, KeyMismatch, LibraryClosed, LibraryMisuse, LibraryRefused,
        LookupFailed, NamespaceMismatch, NamespaceTaken, NoKernelForKey, NotAKernel,
        OverrideForbidden, SchemaMismatch, SchemaNotFound, SignatureMismatch,
        UnknownOperator, WriteInsideListener, WrongArgument,
    )
    from runtime.errors.rpc import (
        AddressUnusable, AlreadyInitialized, BlockGone, ExtraMissing, FolderUnsafe,
        GatherTimeout, JoinTimeout, KeysNeeded, NoSuchMethod, NotAFuture, NotAKey,
        NotAdmitted, NotInitialized, NotTheOwner, NotUnique, OnlyRegistered,
        PayloadTooLarge, ReferenceDead, ReferenceNotSent, ReferencesLeaked, RemoteError,
        RpcError, RpcMisuse, RpcTimeout, SentInVain, ShutdownTimeout, Undecodable,
        UnfitArguments, UnknownCallable, UnknownWorker, Unsendable, WorkerLost,
    )
    from runtime.errors.schema import (
        AnnotationError, AnnotationTaken, ArgumentOrder, DeclarationConflict,
        ImpureFunction, InferenceError, MalformedClassName, MalformedTypeName,
        SchemaError, SchemaSyntaxError, TagMismatch, UnknownAliasKind,
        UnknownDeclaration, UnknownKind, UnknownTag, UnsharedNamespace,
    )
    from runtime.errors.schema import TooManyArguments as TooManySchemaArguments
    from runtime.errors.script import (
        IllTyped, MalformedProgram, MarkMisuse, NoSource, NoSuchCall, NotDefined,
        NotSupported, ProgramError, ScriptError, UnfitClass, UnfitParameter,
        UnknownAttribute, UnknownName,
    )
    from runtime.errors.script_running import (
        ClassGone, ErrorSwallowed, ExecutorRefused, MethodMissing, NotOfType,
        RunningError, ScriptRaised, TooDeep,
    )
    from runtime.errors.script_values import (
        AttributeInFormat, IntegerOverflow, ResultOfOtherType, ScriptValueError,
    )
    from runtime.errors.storage import (
        BadStrides, DeviceUnavailable, NoElementsLeft, NotEnoughMemory, NotExportable,
        NotShareable, OutOfStorage,
    )
    from runtime.errors.subclass import (
        AliasError, DoesNotFit, NotAWrapper, NotReplaceable, UnsupportedAliases,
        UnsupportedForWrappers, WrapperError, WrapperOfAnotherClass, WrongParts,
        WrongResultCount, WrongTensorCount, WrongWhole,
    )
    from runtime.errors.tensor import (
        BadDimension, BadSize, BadState, FixedAttribute, NeedsDetach, NoData,
        NoGradient, NoLength, NotALeaf, NotAnInteger, NotOnHost, NotOneElement,
        NumberTooLarge, RepeatedDimension, ShapesDiffer, TooManyDimensions, UnevenData,
        UnfitValue, UnsupportedData,
    )
    from runtime.errors.trace import (
        BuildRefused, TraceDiffers, TraceError, Untraceable, UntraceableInput,
        UntraceableOutput,
    )

__all__ = [
    "AddressUnusable", "AliasError", "AliasKindConflict", "AliasNotSeen",
    "AliasedResult", "AlreadyInitialized", "AlreadySettled", "AlreadyWrapped",
    "AmbiguousKernel", "AnnotationError", "AnnotationTaken", "ArchiveError",
    "ArchiveTooLarge", "ArgumentOrder", "AttributeInFormat", "AutocastRefused",
    "AutogradAtBackend", "AutogradError", "AutogradMissing", "AwaitedAttribute",
    "BackwardRaised", "BadDimension", "BadMutatesArgs", "BadSize", "BadState",
    "BadStrides", "BlockGone", "BrokenGraph", "BrokenPromise", "BuildRefused",
    "CallError", "CallRefused", "CallWithoutSchema", "CallbackFailed", "CannotInfer",
    "ClassGone", "ClassHandler", "Conflict", "ContextClosed", "ContextError",
    "ContextNotEntered", "CustomOperatorError", "DTypeRefused", "DamagedArchive",
    "DeclarationConflict", "DefinitionRefused", "DeviceUnavailable", "DevicesDiffer",
    "DifferentiatedOnce", "DimensionOutOfRange", "DivisionByZero", "DoesNotFit",
    "DuplicateArgument", "DuplicateDefinition", "DuplicateFallback", "EmptyModeStack",
    "EndlessDispatch", "ErrorSwallowed", "EveryorderError", "ExecutorRefused",
    "ExtraMissing", "FakeDiffers", "FakeHasElements", "FakeMissing", "FakeNotNeeded",
    "FakeRaised", "FakeReadsElements", "FallthroughCalled", "FixedAttribute",
    "FolderUnsafe", "ForeignBits", "FunctionMisuse", "FunctionalDiffers",
    "FutureCancelled", "FutureError", "FutureMisuse", "FutureTimeout", "GatherTimeout",
    "GradcheckFailed", "GradcheckMisuse", "GradientMismatch", "GradientNeeded",
    "GradientStructure", "GradientWrong", "GraphError", "GraphFreed",
    "GuardLeftElsewhere", "GuardNotEntered", "HandlerError", "HandlerNotCallable",
    "HookMisuse", "IllTyped", "ImpureFunction", "IndexOutOfRange", "IndexRefused",
    "InferenceError", "InferenceTensorUsed", "InputWithoutGradient", "IntegerOverflow",
    "JoinTimeout", "KernelError", "KeyMismatch", "KeysNeeded", "KeywordOnlyTensor",
    "LeafModified", "LibraryClosed", "LibraryMisuse", "LibraryNeeded", "LibraryRefused",
    "LookupFailed", "MainStaysOpen", "MalformedClassName", "MalformedProgram",
    "MalformedSignature", "MalformedTypeName", "MarkMisuse", "MaskedArray",
    "MethodMissing", "MissingArgument", "MissingFake", "MissingKernel", "MixedContexts",
    "ModeMisuse", "ModeNotEntered", "ModeNotInnermost", "ModeSlotTaken",
    "ModeStackChanged", "ModeStackError", "ModeWithoutHandler", "ModuleError",
    "ModuleNotInitialized", "MutationMismatch", "NamedNotSupported",
    "NamespaceMismatch", "NamespaceTaken", "NeedsDetach", "NegativeExponent",
    "NewerArchive", "NoCopy", "NoData", "NoDataToRead", "NoDeviceArgument",
    "NoElements", "NoElementsLeft", "NoForward", "NoGradient", "NoGradientToCompute",
    "NoHandler", "NoImplementation", "NoKernelForKey", "NoLength", "NoMatchingOverload",
    "NoModeAtPlace", "NoModeSlot", "NoPriority", "NoSource", "NoSuchCall",
    "NoSuchKernel", "NoSuchMember", "NoSuchMethod", "NoSuchOverload", "NotAFuture",
    "NotAGradient", "NotAKernel", "NotAKey", "NotALeaf", "NotATensorClass",
    "NotAWrapper", "NotAdmitted", "NotAnArchive", "NotAnInteger", "NotAnOperator",
    "NotDefined", "NotDetachable", "NotEnoughMemory", "NotExportable",
    "NotForSubclasses", "NotFunctional", "NotImplementedFormula", "NotInitialized",
    "NotMade", "NotMutable", "NotOfType", "NotOnHost", "NotOneElement", "NotQualified",
    "NotRegistrable", "NotReplaceable", "NotSaveable", "NotScriptable", "NotSettled",
    "NotShareable", "NotSupported", "NotTheOwner", "NotUnique", "NotVerified",
    "NothingToHandle", "NothingToReduce", "NumberTooLarge", "OnlyRegistered",
    "OpCheckError", "OpCheckMisuse", "OperandError", "OperatorChanged", "OperatorGone",
    "OperatorNotHere", "OtherResult", "OutOfMemory", "OutOfStorage", "OutRequiresGrad",
    "OutsideOfHandler", "OverlappingWrite", "OverloadGone", "OverloadNeeded",
    "OverrideForbidden", "PartOutOfRange", "PayloadTooLarge", "PlainHandler",
    "PrivateDispatcher", "ProgramError", "PutAsideElsewhere", "PythonDispatchError",
    "ReferenceDead", "ReferenceNotSent", "ReferencesLeaked", "RemoteError",
    "RepeatedDimension", "ResultOfOtherType", "ResultsAlias", "RpcError", "RpcMisuse",
    "RpcTimeout", "RuleTaken", "RunningError", "SavedTensorModified", "SchemaDiffers",
    "SchemaError", "SchemaMismatch", "SchemaNotFound", "SchemaSyntaxError",
    "ScriptError", "ScriptRaised", "ScriptValueError", "SentInVain", "ShapesDiffer",
    "ShapesDoNotFit", "ShapesRefused", "ShutdownTimeout", "SignatureMismatch",
    "SizeNotKnown", "StackMismatch", "StateMismatch", "SubclassError", "TagMismatch",
    "TagRefused", "TargetDType", "TargetOverlaps", "TargetShape", "TooDeep",
    "TooManyArguments", "TooManyDimensions", "TooManySchemaArguments", "TraceDiffers",
    "TraceError", "UndeclaredAlias", "UndeclaredWrite", "Undecodable",
    "UndefinedResult", "UnevenData", "UnfitArguments", "UnfitClass", "UnfitIndex",
    "UnfitKernel", "UnfitMember", "UnfitParameter", "UnfitValue", "UnknownAliasKind",
    "UnknownArgument", "UnknownAttribute", "UnknownBackend", "UnknownCallable",
    "UnknownDeclaration", "UnknownDevice", "UnknownKey", "UnknownKind", "UnknownMode",
    "UnknownMutated", "UnknownName", "UnknownOperator", "UnknownPolicy", "UnknownTag",
    "UnknownWorker", "Unmovable", "UnrecordedWrite", "Unsendable", "UnsharedNamespace",
    "UnsupportedAliases", "UnsupportedData", "UnsupportedForWrappers", "Untraceable",
    "UntraceableInput", "UntraceableOutput", "UnusedInput", "ViewImpossible",
    "ViewModified", "WithoutFunction", "WorkerLost", "WrappedElsewhere", "WrapperError",
    "WrapperOfAnotherClass", "WriteInsideListener", "WrongArgument",
    "WrongArgumentType", "WrongDetach", "WrongDevice", "WrongHandlerResult",
    "WrongMetadata", "WrongOption", "WrongParts", "WrongResultCount",
    "WrongReturnCount", "WrongReturnType", "WrongSuperCall", "WrongTensorCount",
    "WrongValue", "WrongWhole",
]

# What has another name here than in its area.
_NAMED = {"TooManySchemaArguments": ("runtime.errors.schema", "TooManyArguments")}


def __getattr__(name: str) -> Any:
    """Look for a class in the areas, in the order of their names."""
    from runtime.locks import load

    if name in __all__:
        areas = [f"{__name__}.{area.name}" for area in iter_modules(__path__)]
        places = [_NAMED[name]] if name in _NAMED else [(area, name) for area in areas]
        for area, own in places:
            found = getattr(load(area), own, None)
            if found is not None and found.__module__ == area:
                globals()[name] = found
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """All names, also of what is not loaded yet."""
    return sorted({*globals(), *__all__})
